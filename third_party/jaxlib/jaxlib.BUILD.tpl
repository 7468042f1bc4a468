# The installed jaxlib (see //third_party/jaxlib).

load("@rules_cc//cc:cc_library.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "xla_ffi",
    hdrs = glob(["include/xla/ffi/api/*.h"]),
    includes = ["include"],
)
