"""@googletest: the system's googletest (Debian: libgtest-dev).

Its static libraries are used, because compiling googletest costs more than all torch-free sources of this project
together.
"""

_LIBRARIES = ["libgtest.a", "libgtest_main.a"]

_FOLDERS = [
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
]

_INCLUDES = ["/usr/include", "/usr/local/include"]

def _first(repository_ctx, folders, name):
    for folder in folders:
        if repository_ctx.path(folder + "/" + name).exists:
            return repository_ctx.path(folder + "/" + name)
    fail("googletest is not installed (no %s under %s).\nInstall it:  apt-get install libgtest-dev" %
         (name, ", ".join(folders)))

def _googletest_repository_impl(repository_ctx):
    repository_ctx.symlink(_first(repository_ctx, _INCLUDES, "gtest"), "include/gtest")
    for name in _LIBRARIES:
        repository_ctx.symlink(_first(repository_ctx, _FOLDERS, name), name)
    repository_ctx.template("BUILD.bazel", Label("//third_party/googletest:googletest.BUILD.tpl"), executable = False)

googletest_repository = repository_rule(
    implementation = _googletest_repository_impl,
    doc = "Headers and static libraries of the system's googletest.",
)
