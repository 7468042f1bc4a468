"""@aarch64_gcc: a C++ compiler for 64-bit ARM, and an emulator that runs what it makes.

Debian's g++-aarch64-linux-gnu brings the compiler with headers and libraries of its own, its qemu-user the emulator.
Neither is needed to build for this machine, so the repository is there without them, and says what is missing when
something is to be built for ARM:

    bazel build --config=aarch64 //torch_xla_lite/csrc/ir/...
"""

# What the rc that setup.py writes says of the cross compiler. When it changes, this rule runs again; "none" where there
# is none.
_SILO = "TORCH_XLA_LITE_AARCH64"

_PREFIX = "aarch64-linux-gnu-"
_TOOLS = ["ar", "cpp", "g++", "gcov", "ld", "nm", "objcopy", "objdump", "strip"]

def _output(repository_ctx, arguments):
    result = repository_ctx.execute(arguments, environment = {"LC_ALL": "C"})
    if result.return_code != 0:
        fail("%s failed:\n%s" % (" ".join([str(argument) for argument in arguments]), result.stderr))
    return result.stdout + result.stderr

def _include_folders(repository_ctx, compiler):
    """Folders in which the compiler looks for headers."""
    said = _output(repository_ctx, [compiler, "-E", "-x", "c++", "/dev/null", "-o", "/dev/null", "-v"])
    listed = said.partition("#include <...>")[2].partition("End of search list")[0].splitlines()[1:]

    # A path has no "..", which Bazel would reject.
    return [str(repository_ctx.path(line.strip())) for line in listed]

def _aarch64_gcc_repository_impl(repository_ctx):
    # First of all: a label that Bazel has not looked up yet starts the whole function again.
    template = repository_ctx.path(Label("//third_party/aarch64_gcc:aarch64_gcc.BUILD.tpl"))
    tools = {name: repository_ctx.which(_PREFIX + name) for name in _TOOLS}
    complete = all(tools.values()) and repository_ctx.os.environ.get(_SILO) != "none"
    folders = []
    identity = ""
    if complete:
        folders = _include_folders(repository_ctx, tools["g++"])
        identity = "".join([_output(repository_ctx, command) for command in [
            [tools["g++"], "-v"],
            [tools["ld"], "-v"],
            # Has the C library's version among the macros.
            [tools["g++"], "-E", "-dM", "-x", "c++", "-include", "features.h", "/dev/null"],
        ]])
    emulator = repository_ctx.which("qemu-aarch64") or repository_ctx.which("qemu-aarch64-static")

    # Among the inputs of every compilation, so that a cache tells compilers apart by what they say of themselves.
    repository_ctx.file("identity.txt", identity, executable = False)
    repository_ctx.file("aarch64_gcc.bzl", "AARCH64_GCC = struct(\n    %s,\n)\n" % ",\n    ".join([
        "emulator = %r" % (str(emulator) if emulator else None),
        "include_folders = %r" % folders,
        "tools = %r" % ({name: str(path) for name, path in tools.items()} if complete else None),
    ]), executable = False)
    repository_ctx.file("BUILD.bazel", 'exports_files(["identity.txt"])\n', executable = False)

    # A package of its own: that it cannot be loaded without the compiler must not hinder anything else.
    repository_ctx.template("toolchain/BUILD.bazel", template, executable = False)

aarch64_gcc_repository = repository_rule(
    implementation = _aarch64_gcc_repository_impl,
    doc = "The C++ toolchain that Debian's g++-aarch64-linux-gnu is, and qemu-user beside it.",
    environ = [_SILO],
)
