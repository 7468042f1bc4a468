"""Everything the build takes from beyond this tree, as one macro: for our WORKSPACE, and for that of others.

Another workspace uses our libraries and rules like this. The name has to be torch_xla_lite; where this tree lies does
not matter.

    local_repository(name = "torch_xla_lite", path = "/where/torch_xla_lite/is")

    load("@torch_xla_lite//third_party/bazel_rules:repository.bzl", "bazel_rule_sets")

    bazel_rule_sets(name = "bazel_rule_sets")

    load("@torch_xla_lite//bazel:repositories.bzl", "torch_xla_lite_repositories")

    torch_xla_lite_repositories()

Its BUILD files may then depend on the libraries that are marked public, such as
@torch_xla_lite//torch_xla_lite/csrc/ir:shape, on @jaxlib//:xla_ffi, and load @torch_xla_lite//bazel:defs.bzl. Two
steps, because a file can only be loaded from a repository that was declared before.

A library of ours that is linked into a program there is a copy. Code that is to see the tensors of a running
torch_xla_lite shares its library instead, as _XLAC.so does:

    lite_cc_shared_library(
        name = "libmine.so",
        dynamic_deps = ["@torch_xla_lite//torch_xla_lite:lib/libtorch_xla_lite.so"],
        deps = [":mine"],
    )

What setup.py has found out about this machine, the interpreter above all, is in this tree's .bazelrc.generated; the
other workspace's .bazelrc imports it: `import /where/torch_xla_lite/is/.bazelrc.generated`.
"""

load("@bazel_rule_sets//:declare.bzl", "declare_rule_sets")
load("//third_party/aarch64_gcc:repository.bzl", "aarch64_gcc_repository")
load("//third_party/cuda:repository.bzl", "cuda_repository")
load("//third_party/googletest:repository.bzl", "googletest_repository")
load("//third_party/jaxlib:repository.bzl", "jaxlib_repository")
load("//third_party/pybind11:repository.bzl", "pybind11_repository")
load("//third_party/python:repository.bzl", "python_repository")
load("//third_party/torch:repository.bzl", "torch_repository")
load("//third_party/torch_xla_lite_lib:repository.bzl", "torch_xla_lite_lib_repository")

_REPOSITORIES = {
    "aarch64_gcc": aarch64_gcc_repository,
    "cuda": cuda_repository,
    "googletest": googletest_repository,
    "jaxlib": jaxlib_repository,
    "pybind11": pybind11_repository,
    "python": python_repository,
    "torch": torch_repository,
    "torch_xla_lite_lib": torch_xla_lite_lib_repository,
}

def torch_xla_lite_repositories():
    """Declares all of them, and Bazel's own rule sets where those are on the disk."""
    declare_rule_sets()
    for name, repository in _REPOSITORIES.items():
        repository(name = name)
