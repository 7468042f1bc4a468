# The CUDA toolkit that this tree is configured for (see //third_party/cuda).

load("@rules_cc//cc:cc_library.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

exports_files([
    "bin/nvcc",
    "codes.txt",
])

# The files that nvcc runs or reads when it compiles one source. nvlink is not one of them.
filegroup(
    name = "compiler",
    srcs = [
        "bin/cudafe++",
        "bin/fatbinary",
        "bin/nvcc",
        "bin/nvcc.profile",
        "bin/ptxas",
        "nvvm/bin/cicc",
    ] + glob([
        "bin/crt/*",
        "nvvm/libdevice/*",
    ]),
)

# The headers that every CUDA source includes, and the half-precision types. No `includes`: nvcc knows the folder.
cc_library(
    name = "headers",
    hdrs = glob(
        [
            "include/*.h",
            "include/*.hpp",
            "include/cooperative_groups/**/*.h",
            "include/crt/*",
            "include/nv/**",
            "include/cccl/nv/**",
        ],
        exclude = [
            "include/cupti*",
            "include/generated_*",
            "include/nvperf*",
        ],
    ),
)

# cub, thrust and libcu++: 1,700 headers, for targets that depend on them.
cc_library(
    name = "cccl",
    hdrs = glob(["include/cccl/**"]),
)

# Linked statically, so that a machine needs only a driver to run the library.
cc_library(
    name = "cudart_static",
    srcs = ["lib/libcudart_static.a"],
    linkopts = [
        "-ldl",
        "-lpthread",
        "-lrt",
    ],
)

# Every machine satisfies this; see absent.BUILD.tpl.
constraint_setting(
    name = "toolkit",
    default_constraint_value = ":found",
)

constraint_value(
    name = "found",
    constraint_setting = ":toolkit",
)
