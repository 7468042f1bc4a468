# The cross compiler as a C++ toolchain of Bazel (see //third_party/aarch64_gcc).

load("@torch_xla_lite//third_party/aarch64_gcc:toolchain.bzl", "aarch64_gcc_toolchain")

package(default_visibility = ["//visibility:public"])

aarch64_gcc_toolchain(identity = "//:identity.txt")
