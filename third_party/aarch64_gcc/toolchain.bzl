"""The C++ toolchain for 64-bit ARM: its programs and their flags.

The flags are those that Bazel uses with the machine's own gcc. Bazel 4 selects toolchains by --crosstool_top and --cpu,
Bazel 7 by platforms; there are targets for both, and --config=aarch64 and //bazel:aarch64.bzl set both.
"""

load("@aarch64_gcc//:aarch64_gcc.bzl", "AARCH64_GCC")
load("@rules_cc//cc:action_names.bzl", "ACTION_NAMES")
load("@rules_cc//cc:cc_toolchain_config_lib.bzl", "feature", "flag_group", "flag_set", "tool_path", "with_feature_set")
load("@rules_cc//cc:defs.bzl", "CcToolchainConfigInfo", "cc_common", "cc_toolchain", "cc_toolchain_suite")

_COMPILE_CPP = [
    ACTION_NAMES.cpp_compile,
    ACTION_NAMES.cpp_header_parsing,
    ACTION_NAMES.linkstamp_compile,
]

_COMPILE = _COMPILE_CPP + [
    ACTION_NAMES.assemble,
    ACTION_NAMES.c_compile,
    ACTION_NAMES.preprocess_assemble,
]

_LINK = [
    ACTION_NAMES.cpp_link_dynamic_library,
    ACTION_NAMES.cpp_link_executable,
    ACTION_NAMES.cpp_link_nodeps_dynamic_library,
]

def _flags(actions, flags, mode = None):
    return flag_set(
        actions = actions,
        flag_groups = [flag_group(flags = flags)],
        with_features = [with_feature_set(features = [mode])] if mode else [],
    )

_FEATURES = [
    # --compilation_mode enables one of these three.
    feature(name = "dbg"),
    feature(name = "fastbuild"),
    feature(name = "opt"),
    feature(name = "supports_dynamic_linker", enabled = True),
    feature(name = "supports_pic", enabled = True),
    feature(
        name = "default_compile_flags",
        enabled = True,
        flag_sets = [
            _flags(_COMPILE, [
                "-U_FORTIFY_SOURCE",
                "-fstack-protector",
                "-Wall",
                "-Wno-free-nonheap-object",
                "-fno-omit-frame-pointer",
            ]),
            _flags(_COMPILE, ["-g"], "dbg"),
            _flags(_COMPILE, [
                "-g0",
                "-O2",
                "-D_FORTIFY_SOURCE=1",
                "-DNDEBUG",
                "-ffunction-sections",
                "-fdata-sections",
            ], "opt"),
        ],
    ),
    feature(
        name = "default_link_flags",
        enabled = True,
        flag_sets = [
            _flags(_LINK, [
                "-Wl,-no-as-needed",
                "-Wl,-z,relro,-z,now",
                "-lstdc++",
                "-lm",
            ]),
            _flags(_LINK, ["-Wl,--gc-sections"], "opt"),
        ],
    ),
    # After the user's flags, as in the machine's own toolchain: the output must not depend on the date of the build.
    feature(
        name = "unfiltered_compile_flags",
        enabled = True,
        flag_sets = [_flags(_COMPILE, [
            "-fno-canonical-system-headers",
            "-Wno-builtin-macro-redefined",
            '-D__DATE__="redacted"',
            '-D__TIMESTAMP__="redacted"',
            '-D__TIME__="redacted"',
        ])],
    ),
]

# Bazel's names of tools whose programs have another name.
_PROGRAMS = {"gcc": "g++"}

_TOOLS = ["ar", "cpp", "gcc", "gcov", "ld", "nm", "objcopy", "objdump", "strip"]

def _toolchain_config_impl(ctx):
    return cc_common.create_cc_toolchain_config_info(
        ctx = ctx,
        abi_libc_version = "local",
        abi_version = "local",
        compiler = "gcc",
        cxx_builtin_include_directories = AARCH64_GCC.include_folders,
        features = _FEATURES,
        host_system_name = "local",
        target_cpu = "aarch64",
        target_libc = "local",
        target_system_name = "aarch64-linux-gnu",
        tool_paths = [
            tool_path(name = name, path = AARCH64_GCC.tools[_PROGRAMS.get(name, name)])
            for name in _TOOLS
        ],
        toolchain_identifier = "aarch64_gcc",
    )

_toolchain_config = rule(
    implementation = _toolchain_config_impl,
    provides = [CcToolchainConfigInfo],
)

def aarch64_gcc_toolchain(identity):
    """The targets :suite (for --crosstool_top), :toolchain (for --extra_toolchains) and :platform.

    Args:
      identity: file that identifies the compiler and its version.
    """
    if not AARCH64_GCC.tools:
        fail("There is no C++ compiler for 64-bit ARM here (no aarch64-linux-gnu-g++ on PATH).\n" +
             "Install it, and tell Bazel to look again:  apt-get install g++-aarch64-linux-gnu && " +
             "python -m bazel.pybuild.configure")
    _toolchain_config(name = "config")
    native.filegroup(name = "none")
    cc_toolchain(
        name = "gcc",
        all_files = identity,
        ar_files = identity,
        as_files = identity,
        compiler_files = identity,
        dwp_files = ":none",
        linker_files = identity,
        objcopy_files = identity,
        strip_files = identity,
        supports_param_files = True,
        toolchain_config = ":config",
        toolchain_identifier = "aarch64_gcc",
    )
    cc_toolchain_suite(
        name = "suite",
        toolchains = {"aarch64": ":gcc"},
    )
    constraints = [
        "@platforms//cpu:aarch64",
        "@platforms//os:linux",
    ]
    native.platform(
        name = "platform",
        constraint_values = constraints + ["@torch_xla_lite//third_party/aarch64_gcc:elsewhere"],
    )
    native.toolchain(
        name = "toolchain",
        target_compatible_with = constraints,
        toolchain = ":gcc",
        toolchain_type = "@bazel_tools//tools/cpp:toolchain_type",
    )
