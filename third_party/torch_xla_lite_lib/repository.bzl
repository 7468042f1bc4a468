"""@torch_xla_lite_lib: our own shared objects, as the wheel torch_xla_lite_lib installs them.

A wheel without them (BUILD_PYTHON_ONLY=1) is linked to these, so that nothing of the bridge is compiled for it.
"""

load("//third_party:pip.bzl", "find_python", "run_python")

_LOCATE = """
import importlib.metadata
for found in importlib.metadata.distributions(name="torch_xla_lite_lib"):
    for file in found.files or ():
        if file.suffix == ".so":
            print(found.locate_file(file))
    break
"""

# Read only when something is linked to it: setup.py looks for the package before, and has the better message.
_MISSING = """\
fail("torch_xla_lite_lib is not installed for %s.\\n" +
     "Link to what is built here instead: leave out --define=torch_xla_lite_lib=installed")
"""

def _torch_xla_lite_lib_repository_impl(repository_ctx):
    python = find_python(repository_ctx)
    files = run_python(repository_ctx, python, ["-c", _LOCATE]).splitlines()
    for file in files:
        repository_ctx.symlink(file, file.split("/")[-1])
    content = _MISSING % python
    if files:
        names = [file.split("/")[-1] for file in files]
        content = "exports_files(%r, visibility = [\"//visibility:public\"])\n" % names
    repository_ctx.file("BUILD.bazel", content, executable = False)

torch_xla_lite_lib_repository = repository_rule(
    implementation = _torch_xla_lite_lib_repository_impl,
    doc = "Shared objects of the torch_xla_lite_lib in the interpreter's environment.",
    environ = [
        "TORCH_XLA_LITE_LIBRARY",
        "TORCH_XLA_LITE_PYTHON",
    ],
)
