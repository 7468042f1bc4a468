"""Declares all external dependencies of the build for a WORKSPACE; extensions.bzl does it for a MODULE.bazel.

Another workspace uses our libraries and rules as follows. The repository must be named torch_xla_lite.

    local_repository(name = "torch_xla_lite", path = "/path/of/torch_xla_lite")

    load("@torch_xla_lite//third_party/bazel_rules:repository.bzl", "bazel_rule_sets")

    bazel_rule_sets(name = "bazel_rule_sets")

    load("@torch_xla_lite//bazel:repositories.bzl", "torch_xla_lite_repositories")

    torch_xla_lite_repositories()

These are two steps, because a file can be loaded only from a repository that is declared above. BUILD files of that
workspace may depend on public libraries, such as @torch_xla_lite//torch_xla_lite/csrc/ir:shape, and on
@jaxlib//:xla_ffi, and may load @torch_xla_lite//bazel:defs.bzl.

A program that links one of these libraries contains a copy of it. Code that uses the tensors of a running
torch_xla_lite must link to the shared library instead, as _XLAC.so does:

    lite_cc_shared_library(
        name = "libmine.so",
        dynamic_deps = ["@torch_xla_lite//torch_xla_lite:lib/libtorch_xla_lite.so"],
        deps = [":mine"],
    )

The settings for this machine, such as the interpreter, are in this tree's .bazelrc.generated. The .bazelrc of the other
workspace imports it: `import /path/of/torch_xla_lite/.bazelrc.generated`.
"""

load("@bazel_rule_sets//:declare.bzl", "declare_rule_sets")
load("//bazel:external.bzl", "declare_external_repositories")

def torch_xla_lite_repositories():
    """Declares the repositories, and Bazel's own rule sets if they are on the disk."""
    declare_rule_sets()
    declare_external_repositories()
