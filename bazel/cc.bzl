"""C++ rules: Bazel's own, with our flags, and shared objects that do not repeat each other's code."""

load("//bazel:headers.bzl", "PUBLIC_TAG")
load("//bazel:link_order.bzl", "wanted_link_order")
load("//bazel:linking.bzl", "link_closure", "version_script")

CPP_STANDARD = "c++20"

_COPTS = [
    "-std=" + CPP_STANDARD,
    "-Wall",
    "-Wextra",
    "-Werror",
]

def lite_cc_library(name, copts = [], public = False, tags = [], **kwargs):
    """A C++20 library: one header, or a tight pair.

    Args:
      name: of the target.
      copts: flags beyond ours.
      public: whether the header is for others too: in the wheel, and in other Bazel workspaces. What it includes has
        to be public then.
      tags: as for all targets.
      **kwargs: as for cc_library (srcs, hdrs, deps, alwayslink, visibility ...).
    """
    if public:
        kwargs["visibility"] = ["//visibility:public"]
        tags = tags + [PUBLIC_TAG]
    native.cc_library(
        name = name,
        copts = _COPTS + copts,
        tags = tags,
        **kwargs
    )

def lite_cc_test(name, deps = [], copts = [], size = "small", env = {}, **kwargs):
    """A googletest program; `main` comes with it.

    Args:
      name: of the target.
      deps: what is under test; googletest itself is added.
      copts: flags beyond ours.
      size: as for all tests.
      env: variables beyond the place of torch's shared libraries.
      **kwargs: as for cc_test (srcs, data, tags ...).
    """
    environment = {
        # Programs are linked against interface libraries; the real ones are found when they run.
        "LD_LIBRARY_PATH": "$(TORCH_LIBRARIES)",
    }
    environment.update(env)
    native.cc_test(
        name = name,
        size = size,
        copts = _COPTS + copts,
        env = environment,
        linkstatic = True,
        toolchains = ["@torch//:runtime"],
        deps = deps + ["@googletest//:gtest_main"],
        **kwargs
    )

def _libraries(dynamic_deps):
    """The files that are linked to: those built here, or those of an installed torch_xla_lite_lib."""
    if not dynamic_deps:
        return []
    installed = ["@torch_xla_lite_lib//:" + dep.split("/")[-1] for dep in dynamic_deps]
    return select({
        str(Label("//bazel:installed_library")): installed,
        "//conditions:default": dynamic_deps,
    })

def lite_cc_shared_library(
        name,
        deps,
        dynamic_deps = [],
        exported_names = [],
        exported_namespaces = [],
        link_order = None,
        linkopts = [],
        rpaths = [],
        visibility = None,
        tags = []):
    """A shared object that holds all code of `deps` but what one of `dynamic_deps` holds already.

    Undefined symbols are errors: what is not in `deps` must be in a dynamic dependency or in an interface library.

    Args:
      name: path of the file in this package, such as "lib/libtorch_xla_lite.so"; its last part is the SONAME.
      deps: C++ libraries; everything reachable goes in whole.
      dynamic_deps: other lite_cc_shared_library targets, linked to at run time.
      exported_names: what the object offers to others, as the linker sees it. Where neither this nor the next is given,
        that is everything in it, copies of torch's and the C++ library's inline functions too.
      exported_namespaces: C++ namespaces that it offers whole.
      link_order: a lite_link_order target; None for the one of //bazel/link_order, where that is switched on.
      linkopts: linker flags beyond ours.
      rpaths: folders in which dynamic dependencies are found, relative to the file itself.
      visibility: of the target.
      tags: of the target.
    """
    closure = name + ".closure"
    link_closure(
        name = closure,
        dynamic_closures = [d + ".closure" for d in dynamic_deps],
        dynamic_libraries = _libraries(dynamic_deps),
        tags = tags,
        visibility = visibility,
        deps = deps,
    )
    inputs = []
    if exported_names or exported_namespaces:
        script = name + ".exports.lds"
        version_script(
            name = name + ".exports",
            names = exported_names,
            namespaces = exported_namespaces,
            out = script,
            tags = tags,
        )
        inputs = [":" + script]
        linkopts = linkopts + ["-Wl,--version-script=$(location :%s)" % script]
    native.cc_binary(
        name = name,
        additional_linker_inputs = inputs,
        linkopts = linkopts + [
            "-Wl,-soname," + name.split("/")[-1],
            "-Wl,-z,defs",
        ] + ["-Wl,-rpath,$$ORIGIN/" + folder for folder in rpaths],
        linkshared = True,
        linkstatic = True,
        tags = tags,
        visibility = visibility,
        deps = [":" + closure] + ([link_order] if link_order else wanted_link_order()),
    )

def lite_pybind_library(name, copts = [], deps = [], **kwargs):
    """A C++ library that uses pybind11, to be part of a lite_pybind_extension.

    Args:
      name: of the target.
      copts: flags beyond ours.
      deps: C++ libraries; pybind11 is added.
      **kwargs: as for lite_cc_library.
    """
    lite_cc_library(
        name = name,
        # pybind11 asks for hidden symbols: types of two modules must not be taken for each other.
        copts = ["-fvisibility=hidden"] + copts,
        deps = deps + ["@pybind11"],
        **kwargs
    )

def lite_pybind_extension(name, deps, srcs = [], dynamic_deps = [], **kwargs):
    """A Python extension module made with pybind11.

    Args:
      name: file of the module in this package, such as "_XLAC.so".
      deps: C++ libraries, those that use pybind11 as lite_pybind_library.
      srcs: its own sources.
      dynamic_deps: lite_cc_shared_library targets whose code the module uses but does not repeat.
      **kwargs: as for lite_cc_shared_library (rpaths, linkopts, visibility ...).
    """
    if srcs:
        lite_pybind_library(
            name = name + ".code",
            srcs = srcs,
            deps = deps,
        )
        deps = [":" + name + ".code"]
    lite_cc_shared_library(
        name = name,
        dynamic_deps = dynamic_deps,
        # All that Python looks for.
        exported_names = ["PyInit_" + name.split("/")[-1].partition(".")[0]],
        deps = deps,
        **kwargs
    )
