"""C++ tests for 64-bit ARM, built by the cross compiler (third_party/aarch64_gcc) and run by an emulator.

What --config=aarch64 is for a whole command, the rules here are for single targets, so that one command builds and
tests for both machines.
"""

load("@aarch64_gcc//:aarch64_gcc.bzl", "AARCH64_GCC")

# As in .bazelrc, where the reasons are.
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
        fail("%s can be neither built nor run here." % ctx.label)
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

def lite_aarch64_tests():
    """For each lite_cc_test of the package so far its twin NAME.aarch64, the same test on 64-bit ARM.

    Where there is no cross compiler or no emulator they are skipped.
    """
    able = AARCH64_GCC.tools and AARCH64_GCC.emulator
    for name, rule in native.existing_rules().items():
        if rule["kind"] == "cc_test":
            _aarch64_test(
                name = name + ".aarch64",
                size = rule["size"],
                # Not even looked at where the compiler is missing: that would be an error.
                test = name if able else None,
                # With --config=aarch64 the test itself is for ARM, and needs no twin.
                target_compatible_with = ["//third_party/aarch64_gcc:" + ("here" if able else "elsewhere")],
            )
