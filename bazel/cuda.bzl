"""Compiles CUDA sources with nvcc, as precisely as Bazel compiles C++, to the same object file on every machine.

A source is recompiled when a header that it includes changes, but not when another declared header changes. Including
an undeclared header is an error. The toolkit's programs are inputs, so only the same compiler uses a cache entry.
"""

load("@cuda//:cuda.bzl", "CUDA")
load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_cc//cc:find_cc_toolchain.bzl", "find_cc_toolchain")

# For the host compiler; cc.bzl has the same for C++.
_HOST_FLAGS = [
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Werror",
]

_FLAGS = [
    "-std=c++20",
    "-Werror=all-warnings",
]

_MODE_FLAGS = {
    "dbg": ["-O0", "-g"],
    "fastbuild": ["-O1"],
    "opt": ["-O2", "-DNDEBUG"],
}

def _code_flag(code):
    """nvcc's option for a GPU code: sm_90 is machine code, compute_90 is PTX."""
    return "-gencode=arch=compute_%s,code=%s" % (code.partition("_")[2], code)

def _escaped(option):
    """Escapes an option for a file that gcc reads; versions of gcc differ in reading backslashes inside quotes."""
    for character in ["\\", " ", "\t", "'", "\""]:
        option = option.replace(character, "\\" + character)
    return option

def _host_arguments(ctx, context):
    """The options that nvcc passes to the host compiler, which also preprocesses the source.

    They are in a file, because nvcc splits an option at commas and passes the parts through a shell.
    """
    arguments = ctx.actions.args()
    arguments.add_all(_HOST_FLAGS + ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts, map_each = _escaped)
    arguments.add_all(context.quote_includes, before_each = "-iquote", map_each = _escaped)
    arguments.add_all(context.defines, format_each = "-D%s", map_each = _escaped)
    arguments.set_param_file_format("multiline")
    arguments.use_param_file("-Xcompiler=@%s", use_always = True)
    return arguments

def _compile(ctx, toolchain, context, source):
    """Declares the action that compiles one source, and returns its object."""
    name = "_objs/%s/%s" % (ctx.label.name, source.basename[:-len(source.extension) - 1])
    object = ctx.actions.declare_file(name + ".o")
    unused = ctx.actions.declare_file(name + ".unused")
    declared = depset([source], transitive = [context.headers])
    headers = ctx.actions.args()
    headers.add_all(declared)
    headers.set_param_file_format("multiline")
    headers.use_param_file("%s", use_always = True)

    arguments = ctx.actions.args()
    arguments.add(ctx.file._nvcc)
    arguments.add("-ccbin", toolchain.compiler_executable)
    flags = _FLAGS + _MODE_FLAGS[ctx.var["COMPILATION_MODE"]] + [_code_flag(code) for code in CUDA.codes]
    arguments.add_all(flags + ctx.attr.copts)
    arguments.add_all(context.includes, format_each = "-I%s")
    arguments.add_all(context.system_includes, format_each = "-isystem=%s")

    # nvcc puts a hash of the source's path into names in unnamed namespaces; by default, of the absolute path.
    arguments.add("-Xcudafe", "--orig_src_path_name=" + source.path)
    arguments.add("-c", source)
    ctx.actions.run(
        arguments = [
            object.path,
            unused.path,
            headers,
            ":".join(toolchain.built_in_include_directories),
            arguments,
            _host_arguments(ctx, context),
        ],
        env = {
            "PATH": "/bin:/usr/bin",
            # gcc writes this folder into debug information; Bazel sets the same for C++.
            "PWD": "/proc/self/cwd",
        },
        executable = ctx.executable._driver,
        inputs = declared,
        mnemonic = "CudaCompile",
        outputs = [object, unused],
        progress_message = "Compiling %s for %s" % (source.short_path, ", ".join(CUDA.codes)),
        tools = depset(ctx.files._compiler, transitive = [toolchain.all_files]),
        unused_inputs_list = unused,
    )
    return object

def _lite_cuda_library_impl(ctx):
    toolchain = find_cc_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    root = ctx.label.workspace_root or "."
    own = cc_common.create_compilation_context(
        headers = depset(ctx.files.hdrs),
        quote_includes = depset([root, ctx.bin_dir.path + ("" if root == "." else "/" + root)]),
    )
    deps = [dep[CcInfo] for dep in ctx.attr.deps]
    exported = cc_common.merge_cc_infos(cc_infos = [CcInfo(compilation_context = own)] + deps)
    available = cc_common.merge_cc_infos(cc_infos = [exported, ctx.attr._headers[CcInfo]])
    objects = [_compile(ctx, toolchain, available.compilation_context, source) for source in ctx.files.srcs]
    linking_context, _ = cc_common.create_linking_context_from_compilation_outputs(
        actions = ctx.actions,
        cc_toolchain = toolchain,
        compilation_outputs = cc_common.create_compilation_outputs(pic_objects = depset(objects)),
        disallow_dynamic_library = True,
        feature_configuration = features,
        linking_contexts = [dep.linking_context for dep in deps + [ctx.attr._runtime[CcInfo]]],
        name = ctx.label.name,
    )
    return [
        DefaultInfo(files = depset(objects)),
        CcInfo(
            compilation_context = exported.compilation_context,
            linking_context = linking_context,
        ),
    ]

_lite_cuda_library = rule(
    implementation = _lite_cuda_library_impl,
    attrs = {
        "copts": attr.string_list(doc = "Additional options of nvcc."),
        "deps": attr.label_list(doc = "C++ or CUDA libraries.", providers = [CcInfo]),
        "hdrs": attr.label_list(allow_files = [".h", ".cuh"]),
        "srcs": attr.label_list(allow_files = [".cu"]),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
        "_compiler": attr.label(default = "@cuda//:compiler"),
        "_driver": attr.label(
            allow_single_file = True,
            cfg = "exec",
            default = "//bazel:nvcc.sh",
            executable = True,
        ),
        "_headers": attr.label(default = "@cuda//:headers"),
        "_nvcc": attr.label(
            allow_single_file = True,
            default = "@cuda//:bin/nvcc",
        ),
        "_runtime": attr.label(default = "@cuda//:cudart_static"),
    },
    doc = "A library of CUDA sources.",
    fragments = ["cpp"],
    provides = [CcInfo],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

def lite_cuda_library(name, **kwargs):
    """A library of CUDA sources, for the GPU architectures that this tree is configured for.

    Every C++ rule can have it in `deps`; it includes the CUDA runtime. Without a toolkit
    `bazel build //...` skips it and all targets that depend on it.

    Args:
      name: of the target.
      **kwargs: srcs (.cu), hdrs (.h, .cuh), deps (the libraries whose headers are included; `@cuda//:cccl` for cub and
        thrust; the headers that every CUDA source includes are added), copts (options of nvcc), visibility ...
    """
    _lite_cuda_library(
        name = name,
        target_compatible_with = ["@cuda//:found"],
        **kwargs
    )
