# The installed torch, in layers of headers (see //third_party/torch); the first is the cheapest to include:
#
#   c10          TensorImpl, StorageImpl, device guards, generators
#   tensor_base  the part of at::Tensor without operators
#   stable       torch's stable ABI
#   core         at::Tensor, the dispatcher, torch/library.h
#   operators    operators called by name (core has the most common ones)
#   meta         torch's meta functions in C++, listed by meta_functions.h
#   kernels      torch's structured kernels
#   autocast_ops  the ops that autocast casts
#   host_memory  ATen/core/CachingHostAllocator.h: allocators of pinned memory
#   attention    ATen/native/transformers/attention.h: selects the attention kernel of a device
#   autograd     torch/csrc/autograd/custom_function.h: functions with a derivative
#   python       headers that use Python

load("@rules_cc//cc:cc_library.bzl", "cc_library")
load("@torch_xla_lite//third_party/torch:runtime.bzl", "torch_runtime")
load("@torch_xla_lite//bazel:linking.bzl", "interface_library")
load(":layers.bzl", "ATTENTION", "AUTOGRAD", "C10", "CORE", "HOST_MEMORY", "KERNELS", "META", "OPERATORS", "PYTHON", "STABLE", "TENSOR_BASE")
load(":torch.bzl", "TORCH")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "c10",
    hdrs = C10,
    # With this macro torch's headers include only the operators that they need.
    defines = ["AT_PER_OPERATOR_HEADERS"],
    includes = ["include"],
    deps = [":interface_c10"],
)

cc_library(
    name = "tensor_base",
    hdrs = TENSOR_BASE,
    includes = ["include"],
    deps = [
        ":c10",
        ":interface_torch_cpu",
    ],
)

cc_library(
    name = "stable",
    hdrs = STABLE,
    includes = ["include"],
    deps = [":interface_torch_cpu"],
)

cc_library(
    name = "core",
    hdrs = CORE,
    includes = ["include"],
    deps = [":tensor_base"],
)

[
    cc_library(
        name = name,
        hdrs = headers,
        includes = ["include"],
        deps = [":core"],
    )
    for name, headers in {
        "attention": ATTENTION,
        "autograd": AUTOGRAD,
        "host_memory": HOST_MEMORY,
        "kernels": KERNELS,
        "meta": META + ["include/meta_functions.h"],
        "operators": OPERATORS,
    }.items()
]

cc_library(
    name = "autocast_ops",
    hdrs = ["include/autocast_ops.h"],
    includes = ["include"],
)

cc_library(
    name = "python",
    hdrs = PYTHON,
    includes = ["include"],
    deps = [
        ":core",
        ":interface_torch_python",
        "@pybind11",
        "@python//:headers",
    ],
)

interface_library(
    name = "interface_c10",
    srcs = ["c10.S"],
    runtime = glob(["lib/libc10.so"], allow_empty = True),
    soname = "libc10.so",
)

interface_library(
    name = "interface_torch_cpu",
    srcs = ["torch_cpu.S"],
    runtime = glob(
        [
            "lib/libgomp*",
            "lib/libtorch_cpu.so",
        ],
        allow_empty = True,
    ),
    soname = "libtorch_cpu.so",
)

# Includes Python's own symbols: the process that loads an extension module has them, in whatever file they are.
interface_library(
    name = "interface_torch_python",
    srcs = [
        "torch_python.S",
        "@python//:python.S",
    ],
    runtime = glob(
        [
            "lib/libshm.so",
            "lib/libtorch.so",
            "lib/libtorch_python.so",
        ],
        allow_empty = True,
    ),
    soname = "libtorch_python.so",
)

torch_runtime(
    name = "runtime",
    libraries = TORCH.libraries,
)
