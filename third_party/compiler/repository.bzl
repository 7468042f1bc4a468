"""@compiler: refuses builds after an upgrade of the compiler, until the tree is configured for the new one.

The keys of the caches contain the fingerprint of the compiler that setup.py found (bazel/pybuild/machine/toolchain.py).
A Bazel that is called without setup.py would store what a new compiler made under the key of the old one. So when one
of the compiler's files changes, this rule runs again, and fails.
"""

# Some files of the toolchain, separated by colons; setup.py sets it in .bazelrc.generated.
_FILES = "TORCH_XLA_LITE_TOOLCHAIN"

def _files(repository_ctx):
    return [file for file in repository_ctx.os.environ.get(_FILES, "").split(":") if file]

def _compiler_files_repository_impl(repository_ctx):
    for number, file in enumerate(_files(repository_ctx)):
        repository_ctx.symlink(file, str(number))
    repository_ctx.file("BUILD.bazel", "", executable = False)

compiler_files_repository = repository_rule(
    implementation = _compiler_files_repository_impl,
    doc = "Links to the files. A rule of Bazel 4 can depend on files of a repository and on no others.",
    environ = [_FILES],
)

def _compiler_repository_impl(repository_ctx):
    files = _files(repository_ctx)
    state = repository_ctx.path(Label("//:WORKSPACE")).realpath.dirname.get_child(".bazelrc.generated.json")
    changed = [file for file in files if not repository_ctx.path(file).exists]
    if files and not changed:
        # Bazel runs this rule again when one of them changes.
        for number in range(len(files)):
            repository_ctx.path(Label("@compiler_files//:%d" % number))
        newer = repository_ctx.execute(["find", "-L"] + files + ["-cnewer", state])
        changed = [newer.stderr] if newer.return_code else newer.stdout.splitlines()
    if changed:
        fail(("The compiler was changed after this tree was configured: %s\n" +
              "Configure it again:  python setup.py develop, or python -m bazel.pybuild.configure") %
             ", ".join(changed))
    repository_ctx.file("BUILD.bazel", "", executable = False)
    repository_ctx.file("compiler.bzl", "IS_CONFIGURED = True\n", executable = False)

compiler_repository = repository_rule(
    implementation = _compiler_repository_impl,
    doc = "The compiler is the one whose fingerprint is in the keys of the caches.",
    environ = [_FILES],
)
