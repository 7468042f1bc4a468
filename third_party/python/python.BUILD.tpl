# The interpreter of this tree's environment (see //third_party/python).

package(default_visibility = ["//visibility:public"])

exports_files([
    "interpreter",
    "packages.txt",
    "python.S",
])

cc_library(
    name = "headers",
    hdrs = glob(["include/**/*.h"]),
    includes = ["include"],
)
