"""@python: the interpreter that builds and tests use, and its C headers."""

load("//third_party:pip.bzl", "ENVIRON", "ask_python", "find_python", "run_python")

_BUILDGRID = "TORCH_XLA_LITE_BUILDGRID"

_PROBE = """
import sysconfig
print(sys.version_info.major, sys.version_info.minor, file = answer)
print(sysconfig.get_path("include"), file = answer)
"""

_PACKAGES = """
import importlib.metadata
for line in sorted({f"{d.name}=={d.version}" for d in importlib.metadata.distributions()}):
    # Our own package is installed by a build, after this list was made.
    if not line.startswith("torch_xla_lite"):
        print(line, file = answer)
"""

def _python_repository_impl(repository_ctx):
    # First, because Bazel restarts this function when it meets a label that it has not resolved yet.
    interface = repository_ctx.path(Label("//third_party:interface.py"))
    repository_ctx.path(Label("//third_party:elf.py"))
    oldest = repository_ctx.path(Label("//bazel/pybuild:__init__.py"))
    template = repository_ctx.path(Label("//third_party/python:python.BUILD.tpl"))

    python = find_python(repository_ctx)

    # Fails if it is too old.
    run_python(repository_ctx, python, [oldest])
    version, include = ask_python(repository_ctx, python, _PROBE).splitlines()
    major, minor = [int(part) for part in version.split(" ")]
    headers = repository_ctx.path(include)
    if not headers.get_child("Python.h").exists:
        fail(("The C headers of %s are missing (%s/Python.h).\n" +
              "Install them:  apt-get install python3-dev") % (python, include))
    repository_ctx.symlink(headers, "include")
    repository_ctx.symlink(python, "interpreter")
    repository_ctx.file("packages.txt", ask_python(repository_ctx, python, _PACKAGES))
    repository_ctx.file("buildgrid.txt", repository_ctx.os.environ.get(_BUILDGRID, "none") + "\n")
    repository_ctx.template("BUILD.bazel", template, executable = False)
    repository_ctx.file("python.bzl", 'PYTHON = struct(version = "%d.%d")\n' % (major, minor))

    # The symbols that an extension module takes from the process that loads it.
    run_python(repository_ctx, python, [
        interface,
        "--interpreter",
        "python.S",
    ])

python_repository = repository_rule(
    implementation = _python_repository_impl,
    doc = "The interpreter, as configured by setup.py or found in this tree.",
    environ = ENVIRON + ["TORCH_XLA_LITE_ENVIRONMENT", _BUILDGRID],
)
