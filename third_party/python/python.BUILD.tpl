# The interpreter of this tree's environment (see //third_party/python).

load("@rules_cc//cc:cc_library.bzl", "cc_library")

package(default_visibility = ["//visibility:public"])

exports_files([
    "buildgrid.txt",
    "interpreter",
    "packages.txt",
    "python.S",
])

cc_library(
    name = "headers",
    # Without the interpreter's own headers (internal/).
    hdrs = glob([
        "include/*.h",
        "include/cpython/*.h",
    ]),
    includes = ["include"],
)
