"""Makes the C++ targets of a folder from its list, which scripts/cc_deps.py writes."""

load("//bazel:cc.bzl", "lite_cc_library", "lite_cc_test", "lite_pybind_library")
load("//bazel:cuda.bzl", "lite_cuda_library")

def lite_cc_files(cc_deps, attributes = {}, group = None, public = False):
    """The C++ libraries of a folder, and its test.

    Files and deps are not in the BUILD file: they are what the files' names and #include lines say. A library without
    a header registers something, so it is always linked.

    Args:
      cc_deps: the dictionary CC_DEPS of the file that scripts/cc_deps.py has written for the folder.
      attributes: target -> further attributes: alwayslink, copts, public, tags; data, size, sanitizers of the test; deps:
        what it needs and does not include.
      group: name of a library with all libraries of the folder.
      public: whether the headers are public (lite_cc_library), unless a target's attributes say otherwise.
    """
    package = native.package_name()
    targets = cc_deps.get(package)
    if targets == None:
        fail("The C++ files of //%s are not listed. List them:  python scripts/cc_deps.py" % package)
    for name in attributes:
        if name not in targets:
            fail("//%s has no target %s. If it is new:  python scripts/cc_deps.py" % (package, name))
    libraries = []
    for name, (files, deps) in targets.items():
        more = dict(attributes.get(name, {}))
        deps = deps + more.pop("deps", [])
        if [file for file in files if file.endswith("_test.cc")]:
            lite_cc_test(name = name, srcs = files, deps = deps, **more)
            continue
        libraries.append(":" + name)
        _library(name, files, deps, public, more)
    if group:
        lite_cc_library(name = group, deps = libraries)

def _library(name, files, deps, public, more):
    headers = [file for file in files if file.endswith(".h") or file.endswith(".cuh")]
    sources = [file for file in files if file not in headers]
    make = lite_cc_library
    if [file for file in files if file.endswith(".cu") or file.endswith(".cuh")]:
        make = lite_cuda_library
    else:
        more.setdefault("public", public)
        if not headers:
            more.setdefault("alwayslink", True)
        if "@pybind11" in deps:
            make = lite_pybind_library  # It adds pybind11.
            deps = [dep for dep in deps if dep != "@pybind11"]
    make(name = name, srcs = sources, hdrs = headers, deps = deps, **more)
