"""Shared objects whose most used functions lie side by side, so that they share pages and cache lines.

    USE_PRIORITIZED_TEXT_FOR_LD=1 python setup.py develop
    bazel build --//bazel/link_order:enabled //torch_xla_lite:outputs

Only links differ: optimised code is compiled with a section a function anyway. Where it is off, nothing here is part of
the graph.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "ACTION_NAMES")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("@python//:python.bzl", "PYTHON")

def _flag_impl(_ctx):
    return []

_flag = rule(
    implementation = _flag_impl,
    build_setting = config.bool(flag = True),
)

def _link_order_impl(ctx):
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
        # In the order in which a link has them.
        user_link_flags = ctx.attr.linkopts + ctx.fragments.cpp.linkopts,
    )
    driver = [cc_common.get_tool_for_action(
        action_name = action,
        feature_configuration = features,
    )] + cc_common.get_memory_inefficient_command_line(
        action_name = action,
        feature_configuration = features,
        variables = variables,
    )
    options = ctx.actions.declare_file(ctx.label.name + ".options")
    script = ctx.actions.declare_file(ctx.label.name + ".lds")
    ctx.actions.run(
        outputs = [options, script],
        inputs = depset([ctx.file.symbols, ctx.file._generate], transitive = [toolchain.all_files]),
        executable = PYTHON.executable,
        arguments = [
            "-I",
            ctx.file._generate.path,
            ctx.file.symbols.path,
            options.path,
            script.path,
            "--",
        ] + driver,
        env = cc_common.get_environment_variables(
            action_name = action,
            feature_configuration = features,
            variables = variables,
        ),
        mnemonic = "LinkOrder",
        progress_message = "Ordering functions for %s" % script.short_path,
    )
    return [
        DefaultInfo(files = depset([options, script])),
        CcInfo(linking_context = cc_common.create_linking_context(
            linker_inputs = depset([cc_common.create_linker_input(
                owner = ctx.label,
                additional_inputs = depset([options, script]),
                user_link_flags = depset(["@" + options.path]),
            )]),
        )),
    ]

_link_order = rule(
    implementation = _link_order_impl,
    attrs = {
        "linkopts": attr.string_list(),
        "symbols": attr.label(allow_single_file = True, mandatory = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_generate": attr.label(allow_single_file = True, default = "//bazel/link_order:generate.py"),
    },
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def lite_link_order(name, symbols, linkopts = [], visibility = None):
    """An order of functions, as a library to link with.

    What it gives to the linker depends on which linker that is (see //bazel/link_order:generate.py).

    Args:
      name: of the target.
      symbols: file with the functions' names.
      linkopts: of the shared object, as far as they decide which linker is called and with which script.
      visibility: of the target.
    """
    _link_order(
        name = name,
        linkopts = linkopts,
        symbols = symbols,
        visibility = visibility,
    )

def lite_link_order_flag(name, visibility = None):
    """The option --//PACKAGE:NAME, off by default, and the condition NAME.on.

    Args:
      name: of the option.
      visibility: of both.
    """
    _flag(
        name = name,
        build_setting_default = False,
        visibility = visibility,
    )
    native.config_setting(
        name = name + ".on",
        flag_values = {":" + name: "True"},
        visibility = visibility,
    )

def wanted_link_order():
    """What a shared object depends on for it: the order of our functions when that is asked for, else nothing."""
    return select({
        str(Label("//bazel/link_order:enabled.on")): [str(Label("//bazel/link_order"))],
        "//conditions:default": [],
    })
