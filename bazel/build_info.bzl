"""A Python module that says what the C++ code was built for."""

load("@jaxlib//:jaxlib.bzl", "JAXLIB")
load("@python//:python.bzl", "PYTHON")
load("@torch//:torch.bzl", "TORCH")

_CONTENT = '''"""What the compiled part of this package was built for. Written by //bazel:build_info.bzl."""

JAXLIB_VERSION = "{jaxlib}"
PYTHON_VERSION = "{python}"
TORCH_VERSION = "{torch}"
'''

def _lite_build_info_impl(ctx):
    ctx.actions.write(
        output = ctx.outputs.out,
        content = _CONTENT.format(
            jaxlib = JAXLIB.version,
            python = PYTHON.version,
            torch = TORCH.version,
        ),
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

lite_build_info = rule(
    implementation = _lite_build_info_impl,
    doc = "Writes the module `out`. No stamp, no commit: it changes only when the build would be another.",
    attrs = {"out": attr.output(mandatory = True)},
)
