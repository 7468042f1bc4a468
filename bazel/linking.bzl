"""What goes into a shared object, and how one is linked to another.

Bazel's cc_shared_library is experimental in 4.2.3; these few lines do what we need of it on every Bazel.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

_LinkClosureInfo = provider(
    doc = "Which libraries a shared object holds.",
    fields = {"owners": "depset of Label: the libraries whose code is inside."},
)

def _linked_by_path(owner, libraries):
    """Linking context of files given to the linker by path, which leaves no rpath behind."""
    return cc_common.create_linking_context(
        linker_inputs = depset([cc_common.create_linker_input(
            owner = owner,
            additional_inputs = depset(libraries),
            user_link_flags = depset([library.path for library in libraries]),
        )]),
    )

def _whole(ctx, toolchain, features, library):
    """The same library, all of it linked: nothing in a shared object refers to what it offers."""
    return cc_common.create_library_to_link(
        actions = ctx.actions,
        alwayslink = True,
        cc_toolchain = toolchain,
        feature_configuration = features,
        pic_static_library = library.pic_static_library,
        static_library = None if library.pic_static_library else library.static_library,
    )

def _link_closure_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(ctx = ctx, cc_toolchain = toolchain)
    held_elsewhere = {}
    for closure in ctx.attr.dynamic_closures:
        for owner in closure[_LinkClosureInfo].owners.to_list():
            held_elsewhere[owner] = True

    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    owners, inputs = [], []
    for linker_input in merged.linking_context.linker_inputs.to_list():
        if linker_input.owner in held_elsewhere:
            continue
        libraries = linker_input.libraries
        if linker_input.owner.workspace_name in ("", "torch_xla_lite") and libraries:
            owners.append(linker_input.owner)
            libraries = [_whole(ctx, toolchain, features, library) for library in libraries]
        inputs.append(cc_common.create_linker_input(
            owner = linker_input.owner,
            additional_inputs = depset(linker_input.additional_inputs),
            libraries = depset(libraries),
            user_link_flags = depset(linker_input.user_link_flags),
        ))
    own = cc_common.create_linking_context(linker_inputs = depset(inputs, order = "topological"))
    others = _linked_by_path(ctx.label, ctx.files.dynamic_libraries)
    return [
        cc_common.merge_cc_infos(cc_infos = [
            CcInfo(linking_context = own),
            CcInfo(linking_context = others),
        ]),
        _LinkClosureInfo(owners = depset(owners + held_elsewhere.keys())),
    ]

link_closure = rule(
    implementation = _link_closure_impl,
    doc = "All code reachable from `deps` but what `dynamic_closures` hold, ready to be linked into one file.",
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "dynamic_closures": attr.label_list(providers = [_LinkClosureInfo]),
        "dynamic_libraries": attr.label_list(allow_files = True),
        "_cc_toolchain": attr.label(default = "@bazel_tools//tools/cpp:current_cc_toolchain"),
    },
    fragments = ["cpp"],
    provides = [CcInfo, _LinkClosureInfo],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)

# What the names of C++ start with: functions, their local statics and the guards of those, tables and names of types.
_MANGLED = ["_ZN", "_ZNK", "_ZZN", "_ZZNK", "_ZGVN", "_ZGVZN", "_ZGVZNK", "_ZTVN", "_ZTIN", "_ZTSN"]

def _version_script_impl(ctx):
    patterns = list(ctx.attr.names)
    for namespace in ctx.attr.namespaces:
        patterns += ["%s%d%s*" % (start, len(namespace), namespace) for start in _MANGLED]
    ctx.actions.write(
        output = ctx.outputs.out,
        content = "{\nglobal:\n%slocal:\n  *;\n};\n" % "".join(["  %s;\n" % pattern for pattern in patterns]),
    )
    return [DefaultInfo(files = depset([ctx.outputs.out]))]

version_script = rule(
    implementation = _version_script_impl,
    doc = "Tells the linker which names a shared object offers; all others are its own affair.",
    attrs = {
        "names": attr.string_list(doc = "As the linker sees them, with * for any characters."),
        "namespaces": attr.string_list(doc = "C++ namespaces, all of which is offered."),
        "out": attr.output(mandatory = True),
    },
)

def _linked_library_impl(ctx):
    return [CcInfo(linking_context = _linked_by_path(ctx.label, ctx.files.library))]

linked_library = rule(
    implementation = _linked_library_impl,
    doc = "A shared object to link with by path. Its users find the real one by SONAME when they run.",
    attrs = {"library": attr.label(allow_single_file = True, mandatory = True)},
    provides = [CcInfo],
)

def interface_library(name, soname, srcs, visibility = None):
    """A shared object with the symbols of another but none of its code, to link against.

    Linking against the real libraries of torch would make 434 MB an input of every link. A symbol that the real
    library has not is undefined here too, and so found when we build rather than when a user imports.

    Args:
      name: of the target to put into `deps`.
      soname: name under which the real library is found when the program runs.
      srcs: assembler files that define the symbols.
      visibility: of the target.
    """
    native.cc_binary(
        name = name + ".so",
        srcs = srcs,
        linkopts = [
            "-nostdlib",
            "-Wl,-soname," + soname,
        ],
        linkshared = True,
        linkstatic = True,
    )
    linked_library(
        name = name,
        library = name + ".so",
        visibility = visibility,
    )
