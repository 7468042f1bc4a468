"""@pybind11: the headers of the installed pybind11."""

load("//third_party:pip.bzl", "ENVIRON", "find_package", "find_python")

def _pybind11_repository_impl(repository_ctx):
    # First, because Bazel restarts this function when it meets a label that it has not resolved yet.
    template = repository_ctx.path(Label("//third_party/pybind11:pybind11.BUILD.tpl"))
    python = find_python(repository_ctx)
    pybind11 = find_package(repository_ctx, python, "pybind11")
    repository_ctx.symlink(pybind11.path.get_child("include"), "include")
    repository_ctx.template("BUILD.bazel", template, executable = False)

pybind11_repository = repository_rule(
    implementation = _pybind11_repository_impl,
    doc = "Headers of the pybind11 in the interpreter's environment.",
    environ = ENVIRON,
)
