"""Builds single targets for 64-bit ARM with a cross compiler (third_party/aarch64_gcc) and tests them in an emulator.

--config=aarch64 does the same for a whole command. With these rules, one command builds and tests for both machines.
"""

load("@aarch64_gcc//:aarch64_gcc.bzl", "AARCH64_GCC")

# The same flags as in .bazelrc, which gives the reasons.
_SETTINGS = {
    "//command_line_option:cpu": "aarch64",
    "//command_line_option:crosstool_top": "@aarch64_gcc//toolchain:suite",
    "//command_line_option:extra_toolchains": "@aarch64_gcc//toolchain",
    "//command_line_option:host_crosstool_top": "@bazel_tools//tools/cpp:toolchain",
    "//command_line_option:platforms": "@aarch64_gcc//toolchain:platform",
}

def _to_aarch64_impl(_settings, _attr):
    return _SETTINGS

_to_aarch64 = transition(
    implementation = _to_aarch64_impl,
    inputs = [],
    outputs = _SETTINGS.keys(),
)

_TRANSITION_ATTRS = {
    "_allowlist_function_transition": attr.label(
        default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
    ),
}

_LAUNCHER = """\
#!/bin/sh
# Starts a program for 64-bit ARM on this machine.
exec '{emulator}' -L /usr/aarch64-linux-gnu '{program}' "$@"
"""

def _aarch64_test_impl(ctx):
    launcher = ctx.actions.declare_file(ctx.label.name)
    if not ctx.attr.test:
        fail("%s needs a cross compiler and an emulator for 64-bit ARM." % ctx.label)
    test = ctx.attr.test[0][DefaultInfo]
    program = test.files_to_run.executable
    ctx.actions.write(
        output = launcher,
        content = _LAUNCHER.format(
            emulator = AARCH64_GCC.emulator,
            program = program.short_path,
        ),
        is_executable = True,
    )
    return [DefaultInfo(
        executable = launcher,
        runfiles = ctx.runfiles(files = [program]).merge(test.default_runfiles),
    )]

_aarch64_test = rule(
    implementation = _aarch64_test_impl,
    attrs = dict(
        _TRANSITION_ATTRS,
        test = attr.label(cfg = _to_aarch64),
    ),
    test = True,
)

def _aarch64_files_impl(ctx):
    return [DefaultInfo(files = depset(ctx.files.srcs))]

_aarch64_files = rule(
    implementation = _aarch64_files_impl,
    attrs = dict(
        _TRANSITION_ATTRS,
        srcs = attr.label_list(cfg = _to_aarch64),
    ),
)

# Targets are skipped without a compiler or an emulator, and with --config=aarch64, which builds everything for ARM.
_IS_AVAILABLE = AARCH64_GCC.tools and AARCH64_GCC.emulator
_COMPATIBLE_WITH = [str(Label("//third_party/aarch64_gcc:" + ("here" if _IS_AVAILABLE else "elsewhere")))]

def lite_aarch64_files(name, srcs, visibility = None):
    """Builds the files of targets for 64-bit ARM. Without a compiler for it, this and what depends on it is skipped.

    Args:
      name: of the target.
      srcs: targets.
      visibility: of the target.
    """
    _aarch64_files(
        name = name,
        srcs = srcs if _IS_AVAILABLE else [],
        tags = ["nightly"],
        target_compatible_with = _COMPATIBLE_WITH,
        visibility = visibility,
    )

def aarch64_test(name, test, size):
    """Runs a cc_test for 64-bit ARM in the emulator. Without these programs it is skipped.

    Args:
      name: of the target.
      test: the cc_test.
      size: of the test; selects its timeout.
    """
    _aarch64_test(
        name = name,
        size = size,
        tags = ["nightly"],
        # Without a compiler, Bazel must not analyse the test for ARM: that would be an error.
        test = test if _IS_AVAILABLE else None,
        target_compatible_with = _COMPATIBLE_WITH,
    )
