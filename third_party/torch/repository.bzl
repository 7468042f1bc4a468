"""@torch: the C++ side of the installed torch, in layers.

torch has 9,431 headers. As one target they would cost each sandboxed compilation about a second. So the headers that a
few roots include, directly or not, are divided into layers; torch.BUILD.tpl describes them.
"""

load("//third_party:folder.bzl", "entries")
load("//third_party:pip.bzl", "ENVIRON", "find_package", "find_python", "run_python")

_LIBRARIES = ["c10", "torch_cpu", "torch_python"]

def _torch_repository_impl(repository_ctx):
    # First, because Bazel restarts this function when it meets a label that it has not resolved yet.
    interface = repository_ctx.path(Label("//third_party:interface.py"))
    repository_ctx.path(Label("//third_party:elf.py"))
    layers = repository_ctx.path(Label("//third_party/torch:layers.py"))
    generators = [
        (repository_ctx.path(Label("//third_party/torch:autocast_ops.py")), "include/autocast_ops.h"),
        (repository_ctx.path(Label("//third_party/torch:meta_functions.py")), "include/meta_functions.h"),
    ]
    template = repository_ctx.path(Label("//third_party/torch:torch.BUILD.tpl"))

    python = find_python(repository_ctx)
    torch = find_package(repository_ctx, python, "torch")
    for entry in entries(repository_ctx, torch.path.get_child("include")):
        # torch contains a copy of pybind11; everything must use @pybind11.
        if entry.basename != "pybind11":
            repository_ctx.symlink(entry, "include/" + entry.basename)
    run_python(repository_ctx, python, [
        layers,
        torch.path.get_child("include"),
        "layers.bzl",
        "words.txt",
    ])
    for generator, header in generators:
        run_python(repository_ctx, python, [generator, torch.path.get_child("include"), header])
    libraries = torch.path.get_child("lib")
    for name in _LIBRARIES:
        run_python(repository_ctx, python, [
            interface,
            libraries.get_child("lib%s.so" % name),
            name + ".S",
            "words.txt",
        ])
    folder = str(libraries)
    if not libraries.get_child("libtorch_cuda.so").exists:
        # Inputs of the tests that load them, so that the key of a test does not depend on the place of the environment.
        # A torch for CUDA finds libraries of other packages by their place relative to its own.
        for library in entries(repository_ctx, libraries):
            if ".so" in library.basename:
                repository_ctx.symlink(library, "lib/" + library.basename)
        folder = "../%s/lib" % repository_ctx.name
    repository_ctx.file("torch.bzl", "TORCH = struct(libraries = %r, version = %r)\n" % (folder, torch.version))
    repository_ctx.template("BUILD.bazel", template, executable = False)

torch_repository = repository_rule(
    implementation = _torch_repository_impl,
    doc = "Headers, interface libraries and version of the torch in the interpreter's environment.",
    environ = ENVIRON,
)
