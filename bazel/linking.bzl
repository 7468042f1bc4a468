"""Links shared objects: selects the code that goes into one, and links it to others by path.

Bazel 4.2.3 has cc_shared_library only as an experiment; these rules work with every supported Bazel.
"""

load("@rules_cc//cc/common:cc_common.bzl", "cc_common")
load("@rules_cc//cc/common:cc_info.bzl", "CcInfo")
load("@rules_cc//cc:cc_binary.bzl", "cc_binary")

# The repositories with code to link: the main one, and this one if the main one depends on it.
_OWN = ["", Label("//bazel:linking.bzl").workspace_name]

_LinkClosureInfo = provider(
    doc = "The libraries in a shared object.",
    fields = {"owners": "depset of Label: the libraries whose code it contains."},
)

def _linked_by_path(owner, files, inputs = [], flags = []):
    """A linking context that passes files to the linker by path, so that Bazel adds no rpath and makes no archive."""
    return cc_common.create_linking_context(
        linker_inputs = depset([cc_common.create_linker_input(
            owner = owner,
            additional_inputs = depset(files + inputs),
            user_link_flags = depset([file.path for file in files] + flags),
        )]),
    )

def _link_closure_impl(ctx):
    in_dynamic_deps = {}
    for closure in ctx.attr.dynamic_closures:
        for owner in closure[_LinkClosureInfo].owners.to_list():
            in_dynamic_deps[owner] = True

    merged = cc_common.merge_cc_infos(cc_infos = [dep[CcInfo] for dep in ctx.attr.deps])
    owners, objects, inputs, flags = [], [], [], []
    for linker_input in merged.linking_context.linker_inputs.to_list():
        owner = linker_input.owner
        if owner in in_dynamic_deps:
            continue
        if owner.workspace_name in _OWN and linker_input.libraries:
            owners.append(owner)
            for library in linker_input.libraries:
                objects += library.pic_objects or library.objects
        else:
            archives = [library.pic_static_library or library.static_library for library in linker_input.libraries]
            inputs += archives
            flags += [archive.path for archive in archives]
        inputs += linker_input.additional_inputs
        flags += linker_input.user_link_flags
    libraries = {file.basename: file for file in ctx.files.dynamic_libraries}
    names = [closure.label.name.split("/")[-1].rpartition(".")[0] for closure in ctx.attr.dynamic_closures]
    for name in names:
        if name not in libraries:
            fail("The installed torch_xla_lite_lib has no %s, or is not installed.\n" % name +
                 "Link to the libraries of this tree instead: remove --define=torch_xla_lite_lib=installed")

    # The objects come first: gold exports the symbols of an interface library that it has read before them.
    own = _linked_by_path(ctx.label, objects, inputs, flags)
    others = _linked_by_path(ctx.label, [libraries[name] for name in names])
    return [
        cc_common.merge_cc_infos(cc_infos = [
            CcInfo(linking_context = own),
            CcInfo(linking_context = others),
        ]),
        _LinkClosureInfo(owners = depset(owners + in_dynamic_deps.keys())),
    ]

link_closure = rule(
    implementation = _link_closure_impl,
    doc = "Links all code of `deps` and their dependencies into one file, except the code in `dynamic_closures`.",
    attrs = {
        "deps": attr.label_list(providers = [CcInfo]),
        "dynamic_closures": attr.label_list(providers = [_LinkClosureInfo]),
        "dynamic_libraries": attr.label_list(allow_files = True),
    },
    provides = [CcInfo, _LinkClosureInfo],
)

# The prefixes of mangled names: functions, their static variables and the guards of these, and type information.
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
    doc = "A version script: a shared object exports these names and no others.",
    attrs = {
        "names": attr.string_list(doc = "Mangled; * stands for any characters."),
        "namespaces": attr.string_list(doc = "C++ namespaces."),
        "out": attr.output(mandatory = True),
    },
)

def _linked_library_impl(ctx):
    return [
        CcInfo(linking_context = _linked_by_path(ctx.label, ctx.files.library)),
        DefaultInfo(runfiles = ctx.runfiles(files = ctx.files.runtime)),
    ]

linked_library = rule(
    implementation = _linked_library_impl,
    doc = "A shared object to link with by path. Programs load the real one by its SONAME.",
    attrs = {
        "library": attr.label(allow_single_file = True, mandatory = True),
        "runtime": attr.label_list(allow_files = True, doc = "The real one, for the programs that Bazel runs."),
    },
    provides = [CcInfo],
)

def interface_library(name, soname, srcs, runtime = [], visibility = None):
    """A shared object with the symbols of another one and without its code, to link with.

    torch's real libraries would make 434 MB an input of every link. A symbol that the real library lacks is also
    missing here, so the link fails, and not the user's import.

    Args:
      name: of the target, for `deps`.
      soname: name by which programs load the real library.
      srcs: assembler files that define the symbols.
      runtime: the real library and those that it loads, for the programs that Bazel runs.
      visibility: of the target.
    """
    cc_binary(
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
        runtime = runtime,
        visibility = visibility,
    )
