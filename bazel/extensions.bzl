"""Declares all external dependencies of the build for a MODULE.bazel; repositories.bzl does it for a WORKSPACE.

Another module uses our libraries and rules as follows, with the settings of this tree as repositories.bzl describes.

    bazel_dep(name = "torch_xla_lite")

    local_path_override(module_name = "torch_xla_lite", path = "/path/of/torch_xla_lite")

    external = use_extension("@torch_xla_lite//bazel:extensions.bzl", "external")

    use_repo(external, "jaxlib")
"""

load("//bazel:external.bzl", "declare_external_repositories")

def _external_impl(_module_ctx):
    declare_external_repositories()

external = module_extension(
    implementation = _external_impl,
    doc = "The repositories of //bazel:external.bzl.",
)
