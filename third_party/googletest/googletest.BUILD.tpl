# The system's googletest (see //third_party/googletest).

load("@rules_cc//cc:defs.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "gtest",
    hdrs = glob(["include/gtest/**/*.h"]),
    includes = ["include"],
    linkopts = ["-pthread"],
    deps = select({
        "@torch_xla_lite//third_party/aarch64_gcc:cross": [":compiled"],
        "//conditions:default": [":system"],
    }),
)

cc_library(
    name = "gtest_main",
    deps = [":gtest"] + select({
        "@torch_xla_lite//third_party/aarch64_gcc:cross": [":compiled_main"],
        "//conditions:default": [":system_main"],
    }),
)

cc_library(
    name = "system",
    srcs = ["libgtest.a"],
)

cc_library(
    name = "system_main",
    srcs = ["libgtest_main.a"],
)

cc_library(
    name = "compiled",
    srcs = ["source/src/gtest-all.cc"],
    hdrs = glob(["include/gtest/**/*.h"]),
    includes = [
        "include",
        "source",
    ],
    # gtest-all.cc includes all the other sources.
    textual_hdrs = glob(["source/src/*"]),
)

cc_library(
    name = "compiled_main",
    srcs = ["source/src/gtest_main.cc"],
    deps = [":compiled"],
)
