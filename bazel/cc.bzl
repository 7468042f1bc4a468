"""C++ rules: Bazel's rules with this project's flags, and shared objects that do not contain each other's code."""

# Fails if the compiler was changed after this tree was configured.
load("@compiler//:compiler.bzl", "IS_CONFIGURED")
load("@rules_cc//cc:cc_binary.bzl", "cc_binary")
load("@rules_cc//cc:cc_library.bzl", "cc_library")
load("@rules_cc//cc:cc_test.bzl", "cc_test")
load("//bazel:headers.bzl", "PUBLIC_TAG")
load("//bazel:link_order.bzl", "ordered_link")
load("//bazel:linking.bzl", "link_closure", "version_script")
load("//bazel:sanitizers.bzl", "sanitizer_test")

CPP_STANDARD = "c++20"

_COPTS = [
    "-std=" + CPP_STANDARD,
    "-Wall",
    "-Wextra",
] + select({
    str(Label("//bazel:known_warnings")): ["-Werror"],
    "//conditions:default": [],
})

# gcc collects no garbage below 512 MB: what includes torch's headers compiles in 8 % less time.
_GCC_COPTS = select({
    str(Label("//bazel:clang")): [],
    "//conditions:default": ["--param=ggc-min-heapsize=524288"],
})

# Bazel has clang check which locks are held. Most tests have one thread and use nodes without the lock. gcc skips this.
_TEST_COPTS = ["-Wno-thread-safety"]

def lite_cc_library(name, copts = [], public = False, tags = [], **kwargs):
    """A C++20 library with one header or two closely related ones.

    Args:
      name: of the target.
      copts: additional compiler flags.
      public: whether wheels contain the header and other Bazel workspaces may depend on the library. The headers that
        it includes must be public, too.
      tags: of the target.
      **kwargs: passed to cc_library (srcs, hdrs, deps, alwayslink, visibility ...).
    """
    if public:
        kwargs["visibility"] = ["//visibility:public"]
        tags = tags + [PUBLIC_TAG]
    cc_library(
        name = name,
        copts = _COPTS + _GCC_COPTS + copts,
        tags = tags,
        **kwargs
    )

def _unit_impl(ctx):
    unit = ctx.actions.declare_file(ctx.label.name)
    includes = ['#include "%s"\n' % file.short_path for file in ctx.files.srcs]
    ctx.actions.write(output = unit, content = "".join(includes))
    return [DefaultInfo(files = depset([unit]))]

_unit = rule(
    implementation = _unit_impl,
    attrs = {"srcs": attr.label_list(allow_files = True)},
)

def lite_cc_test(name, srcs, deps = [], size = "small", sanitizers = [], **kwargs):
    """A googletest program, linked with a `main` function.

    Its sources are compiled as one, NAME.unit.cc, so that the compiler reads torch's headers once. They share their
    unnamed namespaces.

    Args:
      name: of the target.
      srcs: sources, and headers that only these include.
      deps: the libraries under test; googletest is added.
      size: of the test; selects its timeout.
      sanitizers: adds the tests NAME.thread_sanitizer and NAME.address_sanitizer for "thread" and "address".
      **kwargs: passed to cc_test (data, tags ...).
    """
    unit = name + ".unit.cc"
    _unit(
        name = unit,
        srcs = [file for file in srcs if file.endswith(".cc")],
    )
    cc_library(
        name = name + ".sources",
        textual_hdrs = srcs,
    )
    cc_test(
        name = name,
        size = size,
        srcs = [":" + unit],
        copts = _COPTS + _GCC_COPTS + _TEST_COPTS,
        # Programs are linked with interface libraries and need torch's real libraries at run time.
        env = {"LD_LIBRARY_PATH": "$(TORCH_LIBRARIES)"},
        linkstatic = True,
        toolchains = ["@torch//:runtime"],
        deps = deps + [
            ":%s.sources" % name,
            "@googletest//:gtest_main",
        ],
        **kwargs
    )
    for sanitizer in sanitizers:
        sanitizer_test(
            name = "%s.%s_sanitizer" % (name, sanitizer),
            size = size,
            sanitizer = sanitizer,
            tags = ["nightly"],
            test = name,
            toolchains = ["@torch//:runtime"],
        )

def _libraries(dynamic_deps):
    """The files to link with: built in this tree, or from an installed torch_xla_lite_lib."""
    return select({
        str(Label("//bazel:installed_library")): ["@torch_xla_lite_lib//:libraries"],
        "//conditions:default": dynamic_deps,
    }) if dynamic_deps else []

def lite_cc_shared_library(
        name,
        deps,
        dynamic_deps = [],
        exported_names = [],
        exported_namespaces = [],
        link_order = None,
        rpaths = [],
        visibility = None):
    """A shared object with all code of `deps`, except the code that one of `dynamic_deps` contains.

    Undefined symbols are errors: each symbol must be in `deps`, in a dynamic dependency or in an interface library.

    Args:
      name: path of the file in this package, such as "lib/libtorch_xla_lite.so"; its last part is the SONAME.
      deps: C++ libraries; they and all that they depend on are linked whole.
      dynamic_deps: lite_cc_shared_library targets that are loaded with this one.
      exported_names: mangled names to export. Without this and the next argument, the object exports all its symbols,
        among them copies of inline functions of torch and of the C++ library.
      exported_namespaces: C++ namespaces to export.
      link_order: //bazel/link_order; None if the user decides.
      rpaths: folders of dynamic dependencies, relative to the file itself.
      visibility: of the target.
    """
    closure = name + ".closure"
    link_closure(
        name = closure,
        dynamic_closures = [d + ".closure" for d in dynamic_deps],
        dynamic_libraries = _libraries(dynamic_deps),
        visibility = visibility,
        deps = deps,
    )
    inputs, options = ordered_link(link_order)
    if exported_names or exported_namespaces:
        script = name + ".exports.lds"
        version_script(
            name = name + ".exports",
            names = exported_names,
            namespaces = exported_namespaces,
            out = script,
        )
        inputs = inputs + [":" + script]
        options = options + ["-Wl,--version-script=$(location :%s)" % script]
    cc_binary(
        name = name,
        additional_linker_inputs = inputs,
        linkopts = [
            "-Wl,-soname," + name.split("/")[-1],
            "-Wl,-z,defs",
        ] + ["-Wl,-rpath,$$ORIGIN/" + folder for folder in rpaths] + options,
        linkshared = True,
        linkstatic = True,
        visibility = visibility,
        deps = [":" + closure],
    )

def lite_pybind_library(name, deps = [], **kwargs):
    """A C++ library that uses pybind11, for the deps of a lite_pybind_extension.

    Args:
      name: of the target.
      deps: C++ libraries; pybind11 is added.
      **kwargs: passed to lite_cc_library.
    """
    lite_cc_library(
        name = name,
        # pybind11 requires hidden symbols; otherwise two modules could confuse their types.
        copts = ["-fvisibility=hidden"],
        deps = deps + ["@pybind11"],
        **kwargs
    )

def lite_pybind_extension(name, deps, dynamic_deps = [], **kwargs):
    """A Python extension module made with pybind11.

    Args:
      name: file of the module in this package, such as "_XLAC.so".
      deps: C++ libraries; those that use pybind11 are lite_pybind_library targets.
      dynamic_deps: lite_cc_shared_library targets whose code the module uses and does not contain.
      **kwargs: passed to lite_cc_shared_library (rpaths, visibility ...).
    """
    lite_cc_shared_library(
        name = name,
        dynamic_deps = dynamic_deps,
        # Python needs no other symbol.
        exported_names = ["PyInit_" + name.split("/")[-1].partition(".")[0]],
        deps = deps,
        **kwargs
    )
