"""Places the most used functions of a shared object side by side, with a linker script for GNU ld.

    USE_PRIORITIZED_TEXT_FOR_LD=1 python setup.py develop
    bazel build --//bazel/link_order:enabled //torch_xla_lite:outputs

As PyTorch does for 64-bit ARM. Only links differ: optimised code is compiled with one section a function anyway.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@python//:python.bzl", "PYTHON")

_GNU_LD = "-fuse-ld=bfd"

def _lite_link_order_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    action = ACTION_NAMES.cpp_link_dynamic_library
    variables = cc_common.create_link_variables(
        cc_toolchain = toolchain,
        feature_configuration = features,
        is_linking_dynamic_library = True,
        user_link_flags = ctx.fragments.cpp.linkopts + [_GNU_LD],
    )
    driver = cc_common.get_tool_for_action(feature_configuration = features, action_name = action)
    options = cc_common.get_memory_inefficient_command_line(
        feature_configuration = features,
        action_name = action,
        variables = variables,
    )
    script = ctx.actions.declare_file(ctx.label.name + ".lds")
    ctx.actions.run(
        outputs = [script],
        inputs = depset([ctx.file.symbols, ctx.file._generate], transitive = [toolchain.all_files]),
        executable = PYTHON.executable,
        arguments = ["-I", ctx.file._generate.path, ctx.file.symbols.path, script.path, driver] + options,
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = action,
            variables = variables,
        ),
        mnemonic = "LinkOrder",
        progress_message = "Ordering functions for %s" % script.short_path,
    )
    return [
        DefaultInfo(files = depset([script])),
        CcInfo(linking_context = cc_common.create_linking_context(
            linker_inputs = depset([cc_common.create_linker_input(
                owner = ctx.label,
                additional_inputs = depset([script]),
                user_link_flags = depset([_GNU_LD, "-Wl,-T," + script.path]),
            )]),
        )),
    ]

lite_link_order = rule(
    implementation = _lite_link_order_impl,
    doc = "The order of functions as a library to link with; `symbols` has their mangled names, most used first.",
    attrs = {
        "symbols": attr.label(allow_single_file = True, mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_generate": attr.label(allow_single_file = True, default = "//bazel/link_order:generate.py"),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def _flag_impl(_ctx):
    return []

lite_link_order_flag = rule(
    implementation = _flag_impl,
    build_setting = config.bool(flag = True),
    doc = "A command-line option that is true or false.",
)

def wanted_link_order():
    """Dependencies of a shared object: the order of our functions where that is enabled, else nothing."""
    return select({
        str(Label("//bazel/link_order:enabled.on")): [str(Label("//bazel/link_order"))],
        "//conditions:default": [],
    })
