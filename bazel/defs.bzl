"""Exports the rules of this project; BUILD files load from no other file.

    load("//bazel:defs.bzl", "lite_cc_library", "lite_cc_test")

    lite_cc_library(
        name = "shape",
        srcs = ["shape.cc"],
        hdrs = ["shape.h"],
        deps = [":dtype"],
    )

cc.bzl has the C++ rules, cc_files.bzl makes the targets of a folder, cuda.bzl has the rule for CUDA sources, python.bzl
the rules for Python, and headers.bzl the public headers.
"""

load("//bazel:build_info.bzl", _lite_build_info = "lite_build_info")
load(
    "//bazel:cc.bzl",
    _lite_cc_library = "lite_cc_library",
    _lite_cc_shared_library = "lite_cc_shared_library",
    _lite_cc_test = "lite_cc_test",
    _lite_pybind_extension = "lite_pybind_extension",
    _lite_pybind_library = "lite_pybind_library",
)
load("//bazel:cc_files.bzl", _lite_cc_files = "lite_cc_files")
load("//bazel:cuda.bzl", _lite_cuda_library = "lite_cuda_library")
load("//bazel:file_names.bzl", _lite_file_names = "lite_file_names")
load("//bazel:headers.bzl", _public_headers = "public_headers")
load("//bazel:link_order.bzl", _LINK_ORDER_OPTIONS = "LINK_OPTIONS")
load(
    "//bazel:python.bzl",
    _lite_py_files = "lite_py_files",
    _lite_py_library = "lite_py_library",
    _lite_py_test = "lite_py_test",
)
load(
    "//bazel:source_files.bzl",
    _ROOT_FILES = "ROOT_FILES",
    _lite_source_files = "lite_source_files",
    _source_files_of = "source_files_of",
)

LINK_ORDER_OPTIONS = _LINK_ORDER_OPTIONS
ROOT_FILES = _ROOT_FILES
lite_build_info = _lite_build_info
lite_cc_files = _lite_cc_files
lite_cc_library = _lite_cc_library
lite_cc_shared_library = _lite_cc_shared_library
lite_cc_test = _lite_cc_test
lite_cuda_library = _lite_cuda_library
lite_file_names = _lite_file_names
lite_py_files = _lite_py_files
lite_py_library = _lite_py_library
lite_py_test = _lite_py_test
lite_pybind_extension = _lite_pybind_extension
lite_pybind_library = _lite_pybind_library
lite_source_files = _lite_source_files
public_headers = _public_headers
source_files_of = _source_files_of
