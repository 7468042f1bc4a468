"""@aarch64_gcc: a C++ cross compiler for 64-bit ARM, and an emulator that runs its programs.

Debian's package g++-aarch64-linux-gnu has the compiler with its headers and libraries, qemu-user the emulator. Builds
for this machine need neither, so the repository exists without them; a build for ARM then says what is missing:

    bazel build --config=aarch64 //torch_xla_lite/csrc/ir/...
"""

_PREFIX = "aarch64-linux-gnu-"
_TOOLS = ["ar", "cpp", "g++", "gcov", "ld", "nm", "objcopy", "objdump", "strip"]

def _output(repository_ctx, arguments):
    result = repository_ctx.execute(arguments, environment = {"LC_ALL": "C"})
    if result.return_code != 0:
        fail("%s failed:\n%s" % (" ".join([str(argument) for argument in arguments]), result.stderr))
    return result.stdout + result.stderr

def _include_folders(repository_ctx, compiler):
    """Folders in which the compiler looks for headers."""
    output = _output(repository_ctx, [compiler, "-E", "-x", "c++", "/dev/null", "-o", "/dev/null", "-v"])
    listed = output.partition("#include <...>")[2].partition("End of search list")[0].splitlines()[1:]

    # Converting it to a path removes "..", which Bazel would reject.
    return [str(repository_ctx.path(line.strip())) for line in listed]

def _aarch64_gcc_repository_impl(repository_ctx):
    # First, because Bazel restarts this function when it meets a label that it has not resolved yet.
    template = repository_ctx.path(Label("//third_party/aarch64_gcc:aarch64_gcc.BUILD.tpl"))
    tools = {name: repository_ctx.which(_PREFIX + name) for name in _TOOLS}
    complete = all(tools.values())
    folders = []
    identity = ""
    if complete:
        folders = _include_folders(repository_ctx, tools["g++"])
        identity += "".join([_output(repository_ctx, command) for command in [
            [tools["g++"], "-v"],
            [tools["ld"], "-v"],
            # Prints the version of the C library, among other macros.
            [tools["g++"], "-E", "-dM", "-x", "c++", "-include", "features.h", "/dev/null"],
        ]])
    emulator = repository_ctx.which("qemu-aarch64") or repository_ctx.which("qemu-aarch64-static")

    # An input of every compilation, so that caches never mix the results of two compilers.
    repository_ctx.file("identity.txt", identity, executable = False)
    repository_ctx.file("aarch64_gcc.bzl", "AARCH64_GCC = struct(\n    %s,\n)\n" % ",\n    ".join([
        "emulator = %r" % (str(emulator) if emulator else None),
        "include_folders = %r" % folders,
        "tools = %r" % ({name: str(path) for name, path in tools.items()} if complete else None),
    ]), executable = False)
    repository_ctx.file("BUILD.bazel", 'exports_files(["identity.txt"])\n', executable = False)

    # In a package of its own, which cannot be loaded without the compiler; the others can.
    repository_ctx.template("toolchain/BUILD.bazel", template, executable = False)

aarch64_gcc_repository = repository_rule(
    implementation = _aarch64_gcc_repository_impl,
    doc = "The C++ toolchain of Debian's g++-aarch64-linux-gnu, and the emulator of qemu-user.",
)
