"""The rules of this project: the only file that BUILD files load from.

    load("//bazel:defs.bzl", "lite_cc_library", "lite_cc_test")

    lite_cc_library(
        name = "shape",
        srcs = ["shape.cc"],
        hdrs = ["shape.h"],
        deps = [":dtype"],
    )

The cc rules are Bazel's own with our compiler flags; what they do beyond that is in cc.bzl. The rule for CUDA sources
is in cuda.bzl, the py rules are in python.bzl, tests for another machine in aarch64.bzl, and what others may include
in headers.bzl.
"""

load(
    "//bazel:aarch64.bzl",
    _lite_aarch64_files = "lite_aarch64_files",
    _lite_aarch64_tests = "lite_aarch64_tests",
)
load("//bazel:build_files.bzl", _lite_build_files = "lite_build_files")
load("//bazel:build_info.bzl", _lite_build_info = "lite_build_info")
load(
    "//bazel:cc.bzl",
    _lite_cc_library = "lite_cc_library",
    _lite_cc_shared_library = "lite_cc_shared_library",
    _lite_cc_test = "lite_cc_test",
    _lite_pybind_extension = "lite_pybind_extension",
    _lite_pybind_library = "lite_pybind_library",
)
load("//bazel:cuda.bzl", _lite_cuda_library = "lite_cuda_library")
load("//bazel:headers.bzl", _public_headers = "public_headers")
load(
    "//bazel:link_order.bzl",
    _lite_link_order = "lite_link_order",
    _lite_link_order_flag = "lite_link_order_flag",
)
load(
    "//bazel:python.bzl",
    _lite_py_library = "lite_py_library",
    _lite_py_modules = "lite_py_modules",
    _lite_py_test = "lite_py_test",
)

lite_aarch64_files = _lite_aarch64_files
lite_aarch64_tests = _lite_aarch64_tests
lite_build_files = _lite_build_files
lite_build_info = _lite_build_info
lite_cc_library = _lite_cc_library
lite_cc_shared_library = _lite_cc_shared_library
lite_cc_test = _lite_cc_test
lite_cuda_library = _lite_cuda_library
lite_link_order = _lite_link_order
lite_link_order_flag = _lite_link_order_flag
lite_py_library = _lite_py_library
lite_py_modules = _lite_py_modules
lite_py_test = _lite_py_test
lite_pybind_extension = _lite_pybind_extension
lite_pybind_library = _lite_pybind_library
public_headers = _public_headers
