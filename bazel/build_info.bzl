"""Writes a Python module with the versions and options that the C++ code was built with."""

load("@cuda//:cuda.bzl", "CUDA")
load("@jaxlib//:jaxlib.bzl", "JAXLIB")
load("@python//:python.bzl", "PYTHON")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain")
load("@torch//:torch.bzl", "TORCH")
load("//bazel:cc.bzl", "CPP_STANDARD")

# The preprocessor expands this text; the lines that start with @ become the module. Its string literals are valid in C
# and in Python.
_TEMPLATE = """#include <string>
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
@JAXLIB_VERSION = "{jaxlib}"
@PYTHON_VERSION = "{python}"
@TORCH_VERSION = "{torch}"
#if defined(__clang__)
@COMPILER = "Clang " TEXT(__clang_major__) "." TEXT(__clang_minor__) "." TEXT(__clang_patchlevel__)
#else
@COMPILER = "GCC " TEXT(__GNUC__) "." TEXT(__GNUC_MINOR__) "." TEXT(__GNUC_PATCHLEVEL__)
#endif
@CPP_STANDARD = {standard}
#if defined(_GLIBCXX_USE_CXX11_ABI)
@CXX11_ABI = TEXT(_GLIBCXX_USE_CXX11_ABI)
#else
@CXX11_ABI = ""
#endif
@MODE = "{mode}"
@CUDA = "{cuda}"
"""

_DOCSTRING = '"""What the compiled part of this package was built with. Written by //bazel:build_info.bzl."""'

_MODES = {
    "dbg": "debug",
    "fastbuild": "without optimisation",
    "opt": "release",
}

def _mode(ctx):
    mode = _MODES[ctx.var["COMPILATION_MODE"]]
    if mode == "release" and "-g" in ctx.fragments.cpp.copts:
        return "release with debug information"
    return mode

def _lite_build_info_impl(ctx):
    toolchain = find_cc_toolchain(ctx)
    template = ctx.actions.declare_file(ctx.label.name + ".template")
    ctx.actions.write(
        output = template,
        content = _TEMPLATE.format(
            cuda = CUDA.evidence,
            jaxlib = JAXLIB.version,
            mode = _mode(ctx),
            python = PYTHON.version,
            # Quoted here, because the preprocessor does not treat C++20 as one word.
            standard = "\"%s\"" % CPP_STANDARD.upper(),
            torch = TORCH.version,
        ),
    )
    ctx.actions.run_shell(
        inputs = depset([template], transitive = [toolchain.all_files]),
        outputs = [ctx.outputs.out],
        arguments = [toolchain.compiler_executable, "-std=" + CPP_STANDARD, template.path, ctx.outputs.out.path],
        # sed joins adjacent string literals.
        command = "set -o pipefail; { echo '%s\n' && \"$1\" \"$2\" -E -P -x c++ \"$3\" | " % _DOCSTRING +
                  "sed -n -e 's/\"  *\"//g' -e 's/^@//p'; } > \"$4\"",
        mnemonic = "LiteBuildInfo",
        # A compiler that starts another one, such as ccache, needs PATH.
        use_default_shell_env = True,
        progress_message = "Writing %s" % ctx.outputs.out.short_path,
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

lite_build_info = rule(
    implementation = _lite_build_info_impl,
    doc = "Writes the module `out`. It has no date, commit or path, so it changes only when the build changes.",
    attrs = {
        "out": attr.output(mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
