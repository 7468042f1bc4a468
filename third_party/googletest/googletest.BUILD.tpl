# The system's googletest (see //third_party/googletest).

load("@rules_cc//cc:cc_library.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "gtest",
    srcs = ["libgtest.a"],
    hdrs = glob(["include/gtest/**/*.h"]),
    includes = ["include"],
    linkopts = ["-pthread"],
)

cc_library(
    name = "gtest_main",
    srcs = ["libgtest_main.a"],
    deps = [":gtest"],
)
