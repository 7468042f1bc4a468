"""@compiler: refuses builds after an upgrade of the compiler, until the tree is configured for the new one.

The keys of the caches contain the fingerprint of the compiler that setup.py found (bazel/pybuild/machine/toolchain.py).
A Bazel that is called without setup.py would store what a new compiler made under the key of the old one. So when one
of the compiler's files changes, this rule runs again, and fails.
"""

# Some files of the toolchain, separated by colons; setup.py sets it in .bazelrc.generated.
_FILES = "TORCH_XLA_LITE_TOOLCHAIN"

def _compiler_repository_impl(repository_ctx):
    files = [file for file in repository_ctx.os.environ.get(_FILES, "").split(":") if file]
    state = repository_ctx.path(Label("//:WORKSPACE")).realpath.dirname.get_child(".bazelrc.generated.json")
    changed = [file for file in files if not repository_ctx.path(file).exists]

    # Bazel runs this rule again when one of them changes; before 7.1 it can't watch them, and only setup.py notices.
    if hasattr(repository_ctx, "watch"):
        for file in files:
            repository_ctx.watch(file)
    if files and not changed:
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
