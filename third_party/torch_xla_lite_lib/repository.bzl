"""@torch_xla_lite_lib: the shared objects of an installed library wheel.

A Python-only wheel (BUILD_PYTHON_ONLY=1) is linked to them, so that the bridge is not compiled again for it.
"""

load("//third_party:pip.bzl", "ask_python", "find_python")

_LOCATE = """
import importlib.metadata
for found in importlib.metadata.distributions(name="torch_xla_lite_lib"):
    for file in found.files or ():
        if file.suffix == ".so":
            print(found.locate_file(file), file = answer)
    break
"""

# Empty without the package: `bazel query` follows both branches of a select, so the target must exist. A link that needs
# a library then fails (bazel/linking.bzl); setup.py checks for the package earlier, with a more detailed message.
_BUILD = """\
filegroup(
    name = "libraries",
    srcs = %r,
    visibility = ["//visibility:public"],
)
"""

def _torch_xla_lite_lib_repository_impl(repository_ctx):
    python = find_python(repository_ctx)
    files = ask_python(repository_ctx, python, _LOCATE).splitlines()
    for file in files:
        repository_ctx.symlink(file, file.split("/")[-1])
    repository_ctx.file("BUILD.bazel", _BUILD % [file.split("/")[-1] for file in files], executable = False)

torch_xla_lite_lib_repository = repository_rule(
    implementation = _torch_xla_lite_lib_repository_impl,
    doc = "Shared objects of the torch_xla_lite_lib in the interpreter's environment.",
    environ = [
        "TORCH_XLA_LITE_LIBRARY",
        "TORCH_XLA_LITE_PYTHON",
    ],
)
