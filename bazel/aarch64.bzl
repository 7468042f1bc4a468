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

def _aarch64_files_impl(ctx):
    return [DefaultInfo(files = depset(ctx.files.srcs))]

_aarch64_files = rule(
    implementation = _aarch64_files_impl,
    attrs = dict(
        _TRANSITION_ATTRS,
        srcs = attr.label_list(cfg = _to_aarch64),
    ),
)

# As a constraint: with --config=aarch64 everything is built for ARM already.
_ABLE = AARCH64_GCC.tools and AARCH64_GCC.emulator
_WHERE = [str(Label("//third_party/aarch64_gcc:" + ("here" if _ABLE else "elsewhere")))]

def lite_aarch64_files(name, srcs, visibility = None):
    """Files of targets, built for 64-bit ARM. What depends on it is skipped where that cannot be done.

    Args:
      name: of the target.
      srcs: targets.
      visibility: of the target.
    """
    _aarch64_files(
        name = name,
        srcs = srcs if _ABLE else [],
        target_compatible_with = _WHERE,
        visibility = visibility,
    )

def lite_aarch64_tests():
    """Adds, for each lite_cc_test above it in the package, NAME.aarch64: the same test on 64-bit ARM.

    Where there is no cross compiler or no emulator they are skipped.
    """
    for name, rule in native.existing_rules().items():
        if rule["kind"] == "cc_test":
            _aarch64_test(
                name = name + ".aarch64",
                size = rule["size"],
                # Not even looked at where the compiler is missing: that would be an error.
                test = name if _ABLE else None,
                target_compatible_with = _WHERE,
            )
