"""@jaxlib: the headers of XLA's foreign function interface, from the jaxlib wheel."""

load("//third_party:pip.bzl", "ENVIRON", "find_package", "find_python")

def _jaxlib_repository_impl(repository_ctx):
    # First, because Bazel restarts this function when it meets a label that it has not resolved yet.
    template = repository_ctx.path(Label("//third_party/jaxlib:jaxlib.BUILD.tpl"))
    jaxlib = find_package(repository_ctx, find_python(repository_ctx), "jaxlib")
    repository_ctx.symlink(jaxlib.path.get_child("include"), "include")
    repository_ctx.file("jaxlib.bzl", "JAXLIB = struct(version = %r)\n" % jaxlib.version)
    repository_ctx.template("BUILD.bazel", template, executable = False)

jaxlib_repository = repository_rule(
    implementation = _jaxlib_repository_impl,
    doc = "Headers and version of the jaxlib in the interpreter's environment.",
    environ = ENVIRON,
)
