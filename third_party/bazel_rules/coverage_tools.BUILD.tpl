# Replaces Bazel's coverage tools, which Debian does not package. Every test depends on them, but only
# `bazel coverage` runs them.

package(default_visibility = ["//visibility:public"])

sh_binary(
    name = "coverage_report_generator",
    srcs = ["unavailable.sh"],
)

sh_binary(
    name = "lcov_merger",
    srcs = ["unavailable.sh"],
)
