# The CUDA toolkit that this tree is configured for (see //third_party/cuda).

package(default_visibility = ["//visibility:public"])

exports_files([
    "bin/nvcc",
    "codes.txt",
])

# All that nvcc starts or reads when it compiles one file; nvlink is for programs in several parts.
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

# What every CUDA source includes, and the types of half precision. No `includes`: nvcc knows the place.
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

# cub, thrust and libcu++: 1,700 headers, for those that ask for them.
cc_library(
    name = "cccl",
    hdrs = glob(["include/cccl/**"]),
)

# Inside whatever is linked with it, so that a machine needs a driver and nothing else of CUDA.
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
