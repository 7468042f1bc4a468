# This tree is configured without a CUDA toolkit (see //third_party/cuda).
#
# Targets that need one are incompatible with every platform, so `bazel build //...` skips them.

load("@rules_cc//cc:cc_library.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

cc_library(name = "headers")

cc_library(name = "cccl")

cc_library(name = "cudart_static")

filegroup(name = "compiler")

exports_files([
    "bin/nvcc",
    "codes.txt",
])

constraint_setting(name = "toolkit")

constraint_value(
    name = "found",
    constraint_setting = ":toolkit",
)
