"""@cuda: the CUDA toolkit that setup.py found, or an empty replacement if there is none.

bazel/pybuild/machine/cuda.py decides which toolkit is used and for which GPU architectures; its decisions arrive here
as variables. The programs of the compiler are files of this repository and so
inputs of everything it compiles: another nvcc gives another cache key, on any machine.
"""

load("//third_party:folder.bzl", "entries")

_ENVIRON = [
    "TORCH_XLA_LITE_CUDA_CODES",
    "TORCH_XLA_LITE_CUDA_EVIDENCE",
    "TORCH_XLA_LITE_CUDA_HOME",
]

_TEMPLATE = "CUDA = struct(codes = %r, evidence = %r)\n"

# As in bazel/pybuild/machine/cuda_toolkits.py.
_TARGETS = ["", "targets/x86_64-linux/", "targets/sbsa-linux/"]

def _first(home, names, content):
    """The first folder of the toolkit with one of the names that has a file named `content`."""
    places = [target + name for target in _TARGETS for name in names]
    for place in places:
        folder = home.get_child(place)
        if folder.get_child(content).exists:
            return folder
    fail("The CUDA toolkit in %s has no %s/%s.\nConfigure again with a complete one:  python setup.py develop" %
         (home, places[0], content))

def _link_toolkit(repository_ctx, home):
    # bin/ is a folder with links, not a link to a folder: nvcc looks for its files beside the folder that it is in.
    for name in ["bin", "bin/crt"]:
        for file in entries(repository_ctx, repository_ctx.path("%s/%s" % (home, name))):
            if file.basename != "crt":
                repository_ctx.symlink(file, name + "/" + file.basename)
    repository_ctx.symlink(home.get_child("nvvm"), "nvvm")
    repository_ctx.symlink(_first(home, ["include"], "cuda_runtime.h"), "include")
    libraries = _first(home, ["lib64", "lib"], "libcudart_static.a")
    repository_ctx.symlink(libraries.get_child("libcudart_static.a"), "lib/libcudart_static.a")

def _cuda_repository_impl(repository_ctx):
    # First, because Bazel restarts this function when it meets a label that it has not resolved yet.
    template = repository_ctx.path(Label("//third_party/cuda:cuda.BUILD.tpl"))
    absent = repository_ctx.path(Label("//third_party/cuda:absent.BUILD.tpl"))

    environ = repository_ctx.os.environ
    home = environ.get("TORCH_XLA_LITE_CUDA_HOME", "")
    codes = environ.get("TORCH_XLA_LITE_CUDA_CODES", "").split(",") if home else []
    evidence = environ.get("TORCH_XLA_LITE_CUDA_EVIDENCE", "off: not configured")
    repository_ctx.file("cuda.bzl", _TEMPLATE % (codes, evidence))
    repository_ctx.file("codes.txt", "".join([code + "\n" for code in codes]))
    if home:
        _link_toolkit(repository_ctx, repository_ctx.path(home))
    else:
        repository_ctx.file("bin/nvcc", "")
    repository_ctx.template("BUILD.bazel", template if home else absent, executable = False)

cuda_repository = repository_rule(
    implementation = _cuda_repository_impl,
    doc = "Compiler, headers and runtime of the CUDA toolkit that this tree is configured for.",
    environ = _ENVIRON,
)
