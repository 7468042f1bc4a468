"""Python rules: sources are run-time files, and pytest runs the tests with the interpreter of @python.

Bazel's py_test is not used: its stub needs a program named `python`, which Debian lacks, it starts two interpreters for
each test, and Bazel 8 does not contain it.
"""

def _runfiles(ctx, files):
    runfiles = ctx.runfiles(files = files)
    for dep in ctx.attr.deps + ctx.attr.data:
        runfiles = runfiles.merge(dep[DefaultInfo].default_runfiles)
        runfiles = runfiles.merge(ctx.runfiles(transitive_files = dep[DefaultInfo].files))
    return runfiles

def _lite_py_library_impl(ctx):
    return [DefaultInfo(
        files = depset(ctx.files.srcs),
        runfiles = _runfiles(ctx, ctx.files.srcs),
    )]

_COMMON_ATTRS = {
    "data": attr.label_list(
        allow_files = True,
        doc = "Files and targets that the code needs at run time.",
    ),
    "deps": attr.label_list(doc = "Libraries that the code imports."),
    "srcs": attr.label_list(allow_files = [".py"]),
}

lite_py_library = rule(
    implementation = _lite_py_library_impl,
    doc = "Python sources, imported by their path from the workspace root.",
    attrs = _COMMON_ATTRS,
)

# The path of the interpreter is not in the launcher, because it would be in the key of the test: another clone with
# another environment could not use the result. Links lead to it. It finds its packages beside the link by which it is
# started, so the links are followed until one is in an environment. At the end of its import, torch would call the
# package that is installed in that environment, which is no input of the test.
_LAUNCHER = """\
#!/bin/sh
# Runs one test target with pytest and the interpreter that this tree is configured for.
python='{interpreter}'
while [ -L "$python" ] && [ ! -e "${{python%/*}}/../pyvenv.cfg" ]; do
  target=$(readlink "$python")
  case $target in
    /*) python=$target ;;
    *) python=${{python%/*}}/$target ;;
  esac
done
export PYTHONPATH="$PWD" PYTHONDONTWRITEBYTECODE=1 TORCH_DEVICE_BACKEND_AUTOLOAD=0
exec "$python" -ISP '{client}' '{runner}' {tests} "$@"
"""

def _lite_py_test_impl(ctx):
    launcher = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        output = launcher,
        content = _LAUNCHER.format(
            client = ctx.file._client.short_path,
            interpreter = ctx.file._interpreter.short_path,
            runner = ctx.file._runner.short_path,
            tests = " ".join(["'%s'" % src.short_path for src in ctx.files.srcs]),
        ),
        is_executable = True,
    )
    return [
        DefaultInfo(
            executable = launcher,
            runfiles = _runfiles(ctx, ctx.files.srcs + [
                ctx.file._client,
                ctx.file._interpreter,
                ctx.file._packages,
                ctx.file._plugin,
                ctx.file._runner,
            ]),
        ),
        testing.TestEnvironment(ctx.attr.env),
    ]

_lite_py_test = rule(
    implementation = _lite_py_test_impl,
    attrs = dict(
        _COMMON_ATTRS,
        env = attr.string_dict(doc = "Variables to set."),
        # Starts the interpreter, or a fork of one that has imported torch and jax.
        _client = attr.label(allow_single_file = True, default = "//bazel:fork_client.py"),
        _interpreter = attr.label(allow_single_file = True, default = "@python//:interpreter"),
        # Versions of all packages in the environment: after an upgrade, tests run again.
        _packages = attr.label(allow_single_file = True, default = "@python//:packages.txt"),
        _plugin = attr.label(allow_single_file = True, default = "//bazel:pytest_plugin.py"),
        _runner = attr.label(allow_single_file = True, default = "//bazel:pytest_runner.py"),
    ),
    test = True,
)

def lite_py_test(name, srcs, size = "small", tags = [], **kwargs):
    """A test target whose files pytest runs.

    Args:
      name: of the target.
      srcs: the test files.
      size: selects the timeout; see test_timeout in .bazelrc.
      tags: of the target.
      **kwargs: deps, data, env, shard_count ...
    """
    _lite_py_test(
        name = name,
        size = size,
        srcs = srcs,
        # The interpreter's packages are on this machine. Results may be in a remote cache: packages.txt is in the key.
        tags = tags + ["no-remote-exec"],
        **kwargs
    )

def lite_py_files(
        python_deps,
        attributes = {},
        group = None,
        lowerings = {},
        one_test = None,
        size = "small",
        test_deps = []):
    """One target for each Python file of a folder, so that an edit runs only the tests that use the file.

    `x_test.py` is the test `x_test`, another file `x.py` the library `x`. If cases of the test are marked nightly,
    `x_nightly_test` runs them (bazel/pytest_plugin.py). None of these is named in the BUILD file, unless it needs more
    than its imports say.

    Args:
      python_deps: the dictionary PYTHON_DEPS of the file that scripts/python_deps.py has written for the folder: what a
        file uses, if it uses anything.
      attributes: target -> further attributes: data, deps, env, shard_count, size, tags ...
      group: name of a library with all libraries of the folder.
      lowerings: target -> the files of torch_xla_lite/lowering that it needs and does not import, as words.
      one_test: name of one test with all test files of the folder, for what their processes would repeat.
      size: of the tests.
      test_deps: what all tests need and do not import.
    """
    package = native.package_name()
    used = python_deps.get(package, {})
    nightly = used.get("nightly", [])

    # `setup.py develop` writes _build_info.py.
    files = [file[:-len(".py")] for file in native.glob(["*.py"], exclude = ["_build_info.py"])]
    tests = [file for file in files if file.endswith("_test")]
    libraries = [file for file in files if file not in tests]
    targets = {file: [file] for file in libraries}
    if one_test:
        targets[one_test] = tests
    else:
        targets.update({file: [file] for file in tests})
    for name in attributes.keys() + lowerings.keys():
        if name not in targets:
            fail("//%s has no file %s.py." % (package, name))
    for name, sources in targets.items():
        more = dict(attributes.get(name, {}))
        families = [word for word in lowerings.get(name, "").split(" ") if word]
        deps = more.pop("deps", []) + ["//torch_xla_lite/lowering:" + family for family in families]
        for source in sources:
            deps += used.get(source, [])
        if name in libraries:
            make = lite_py_library
            more["visibility"] = ["//:__subpackages__"]
        else:
            make = lite_py_test
            deps += test_deps
            more.setdefault("size", size)
        more["srcs"] = [source + ".py" for source in sources]
        more["deps"] = {dep: None for dep in deps}.keys()  # Each once.
        make(name = name, **more)
        if [source for source in sources if source in nightly]:
            more["tags"] = more.get("tags", []) + ["nightly"]
            more["timeout"] = "eternal"
            if "//torch_xla_lite:__init__" in deps and "//torch_xla_lite" not in deps:
                more["deps"].append("//torch_xla_lite")  # With all lowerings: it runs each night anyway.
            base = name[:-len("_test")] if name.endswith("_test") else name
            make(name = base + "_nightly_test", args = ["-m", "nightly"], **more)
    if group:
        lite_py_library(
            name = group,
            visibility = ["//:__subpackages__"],
            deps = [":" + file for file in libraries],
        )
