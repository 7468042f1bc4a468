"""Finds the Python interpreter and the packages in its environment, for repository rules.

Packages are not imported: the import path gives the folder, the metadata the version.
"""

# Variables that setup.py sets in .bazelrc.generated. The fingerprint depends on the versions of the packages below:
# when one changes, the rules run again.
ENVIRON = ["TORCH_XLA_LITE_FINGERPRINT", "TORCH_XLA_LITE_PYTHON"]

_LOCATE = """
import importlib.metadata, importlib.util
spec = importlib.util.find_spec(sys.argv[1])
if spec and spec.submodule_search_locations:
    print(spec.submodule_search_locations[0], file = answer)
    print(importlib.metadata.version(sys.argv[1]), file = answer)
"""

def find_python(repository_ctx):
    """The interpreter that this tree is configured for.

    In this order: TORCH_XLA_LITE_PYTHON (setup.py sets it in .bazelrc.generated), .venv/bin/python, python3 on PATH.

    Args:
      repository_ctx: of the calling rule.

    Returns:
      Path of the interpreter. Links are not resolved, because the path identifies the virtual environment.
    """
    named = repository_ctx.os.environ.get("TORCH_XLA_LITE_PYTHON")
    if named:
        if not repository_ctx.path(named).exists:
            fail(("The interpreter that this tree was configured for is gone: %s\n" +
                  "Configure it again with one that exists:  python setup.py develop") % named)
        return repository_ctx.path(named)
    tree = repository_ctx.path(Label("//:WORKSPACE")).realpath.dirname
    own = tree.get_child(".venv").get_child("bin").get_child("python")
    if own.exists:
        return own
    found = repository_ctx.which("python3")
    if not found:
        fail("No Python found: there is no .venv in this tree and no python3 on PATH.\n" +
             "Set this tree up first:  scripts/bootstrap.sh")

    # The one on PATH may be a wrapper; ask it for the interpreter that it starts.
    return repository_ctx.path(ask_python(repository_ctx, found, "print(sys.executable, file = answer)").strip())

def run_python(repository_ctx, python, arguments):
    """Runs the interpreter, isolated from the user's settings."""
    result = repository_ctx.execute([python, "-I"] + arguments)
    if result.return_code != 0:
        fail("%s failed:\n%s" % (" ".join([str(a) for a in [python] + arguments]), result.stderr))

def ask_python(repository_ctx, python, code, *arguments):
    """Runs code that writes to the file `answer`, and returns what it has written.

    The standard output may have other text: an environment can have a sitecustomize that prints.
    """
    file = repository_ctx.path("answer.txt")
    code = "import sys; answer = open(sys.argv.pop(), 'w')\n" + code
    run_python(repository_ctx, python, ["-c", code] + list(arguments) + [file])
    answer = repository_ctx.read(file)
    repository_ctx.delete(file)
    return answer

def find_package(repository_ctx, python, name):
    """Finds a package in the interpreter's environment. setup.py has checked its version (bazel/pybuild/machine).

    Args:
      repository_ctx: of the calling rule.
      python: the interpreter, from find_python.
      name: of the package, both for importing and installing.

    Returns:
      struct(path, version): its folder, and its version without a local part such as "+cpu".
    """
    lines = ask_python(repository_ctx, python, _LOCATE, name).splitlines()
    if not lines:
        fail("%s is not installed for %s.\nInstall it:  %s -m pip install %s" % (name, python, python, name))
    return struct(path = repository_ctx.path(lines[0]), version = lines[1].partition("+")[0])
