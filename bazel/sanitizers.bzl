"""Runs C++ tests that are compiled with a sanitizer of gcc or clang: ThreadSanitizer or AddressSanitizer.

    lite_cc_test(name = "ir", sanitizers = ["thread"], ...)     # also makes the test ir.thread_sanitizer

What the test is linked with is compiled again, in a configuration of its own, and shared by all such tests. torch's
libraries are used as they are: of their code, AddressSanitizer checks the calls of malloc and free only.
"""

# Flags of both sanitizers: reports with names and lines, at a bearable speed.
_COPTS = ["-O1", "-g1", "-fno-omit-frame-pointer"]

# Environment variables of the program.
_OPTIONS = {
    # torch keeps objects until the process ends, so leaks are not reported.
    "address": "ASAN_OPTIONS=detect_leaks=0",
    "thread": "TSAN_OPTIONS=second_deadlock_stack=1",
}

_FLAGS = ["//command_line_option:copt", "//command_line_option:linkopt"]

def _to_sanitizer_impl(settings, attr):
    flag = "-fsanitize=" + attr.sanitizer
    copts, linkopts = [settings[name] + [flag] for name in _FLAGS]
    return dict(zip(_FLAGS, [copts + _COPTS, linkopts]))

_to_sanitizer = transition(
    implementation = _to_sanitizer_impl,
    inputs = _FLAGS,
    outputs = _FLAGS,
)

_LAUNCHER = """\
#!/bin/sh
# Starts a program that has a sanitizer. Without random addresses if that is permitted: older sanitizers fail on some.
export {options} LD_LIBRARY_PATH='{libraries}'
setarch -R true 2>/dev/null && exec setarch -R '{program}' "$@"
exec '{program}' "$@"
"""

def _sanitizer_test_impl(ctx):
    launcher = ctx.actions.declare_file(ctx.label.name)
    test = ctx.attr.test[0][DefaultInfo]
    program = test.files_to_run.executable
    ctx.actions.write(
        output = launcher,
        content = _LAUNCHER.format(
            libraries = ctx.var["TORCH_LIBRARIES"],
            options = _OPTIONS[ctx.attr.sanitizer],
            program = program.short_path,
        ),
        is_executable = True,
    )
    return [DefaultInfo(
        executable = launcher,
        runfiles = ctx.runfiles(files = [program]).merge(test.default_runfiles),
    )]

sanitizer_test = rule(
    implementation = _sanitizer_test_impl,
    doc = "Runs a cc_test with a sanitizer; its toolchain is @torch//:runtime.",
    attrs = {
        "sanitizer": attr.string(values = _OPTIONS.keys()),
        "test": attr.label(cfg = _to_sanitizer),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
    test = True,
)
