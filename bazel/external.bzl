"""The external dependencies of the build: one list for WORKSPACE and MODULE.bazel."""

load("//third_party/compiler:repository.bzl", "compiler_repository")
load("//third_party/cuda:repository.bzl", "cuda_repository")
load("//third_party/googletest:repository.bzl", "googletest_repository")
load("//third_party/jaxlib:repository.bzl", "jaxlib_repository")
load("//third_party/pybind11:repository.bzl", "pybind11_repository")
load("//third_party/python:repository.bzl", "python_repository")
load("//third_party/torch:repository.bzl", "torch_repository")
load("//third_party/torch_xla_lite_lib:repository.bzl", "torch_xla_lite_lib_repository")

_REPOSITORIES = {
    "compiler": compiler_repository,
    "cuda": cuda_repository,
    "googletest": googletest_repository,
    "jaxlib": jaxlib_repository,
    "pybind11": pybind11_repository,
    "python": python_repository,
    "torch": torch_repository,
    "torch_xla_lite_lib": torch_xla_lite_lib_repository,
}

def declare_external_repositories():
    """Declares a repository for each dependency."""
    for name, repository in _REPOSITORIES.items():
        repository(name = name)
