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

def lite_py_nightly_test(name, deps, tags = [], **kwargs):
    """The cases of test files that are marked nightly. `bazel test --config=nightly` runs such targets.

    Args:
      name: of the target for the other cases; this one is x_nightly_test for x_test.
      deps: libraries. A test of the package depends on all of it, with all lowerings: it runs each night anyway.
      tags: of the target.
      **kwargs: passed to lite_py_test.
    """
    if "//torch_xla_lite:__init__" in deps and "//torch_xla_lite" not in deps:
        deps = deps + ["//torch_xla_lite"]
    lite_py_test(
        name = (name[:-len("_test")] if name.endswith("_test") else name) + "_nightly_test",
        args = ["-m", "nightly"],
        tags = tags + ["nightly"],
        timeout = "eternal",
        deps = deps,
        **kwargs
    )

def _unique(labels):
    return {label: None for label in labels}.keys()

def _py_test(name, sources, deps, nightly, only_nightly, attributes):
    """The targets of test files: one for the cases of each day, and one for those that are marked nightly."""
    attributes = dict(attributes, srcs = [source + ".py" for source in sources], deps = deps)
    if [source for source in sources if source not in only_nightly]:
        # The cases of a day are too few to be divided.
        lite_py_test(name = name, **dict(attributes, shard_count = None))
    if [source for source in sources if source in nightly + only_nightly]:
        lite_py_nightly_test(name = name, **attributes)

def lite_py_files(python_deps, attributes = {}, group = None, lowerings = {}, one_test = None, tests = {}):
    """One target for each Python file of a folder, so that an edit runs only the tests that use the file.

    `x_test.py` is the test `x_test`, another file `x.py` the library `x`. If cases of the test are marked nightly,
    `x_nightly_test` runs them (bazel/pytest_plugin.py); if all are, there is no `x_test`. None of these is named in the
    BUILD file, unless it needs more than its imports say.

    Args:
      python_deps: the dictionary PYTHON_DEPS of the file that scripts/python_deps.py has written for the folder: what a
        file uses, if it uses anything.
      attributes: target -> further attributes: data, deps, env, shard_count, size, tags ...
      group: name of a library with all libraries of the folder.
      lowerings: target -> the files of torch_xla_lite/lowering that it runs and does not import.
      one_test: name of one test with all test files of the folder, for what their processes would repeat.
      tests: attributes of all tests; a test has the deps of both.
    """
    package = native.package_name()
    used = python_deps.get(package, {})

    # `setup.py develop` writes _build_info.py.
    files = [file[:-len(".py")] for file in native.glob(["*.py"], exclude = ["_build_info.py"])]
    libraries = [file for file in files if not file.endswith("_test")]
    test_files = [file for file in files if file not in libraries]
    targets = {file: [file] for file in libraries}
    targets.update({one_test: test_files} if one_test else {file: [file] for file in test_files})
    for name in attributes.keys() + lowerings.keys():
        if name not in targets:
            fail("//%s has no file %s.py." % (package, name))
    for name, sources in targets.items():
        more = dict({} if name in libraries else tests, **attributes.get(name, {}))
        deps = more.pop("deps", []) + ["//torch_xla_lite/lowering:" + family for family in lowerings.get(name, [])]
        for source in sources:
            deps += used.get(source, [])
        if name in libraries:
            lite_py_library(
                name = name,
                srcs = [name + ".py"],
                visibility = ["//:__subpackages__"],
                deps = _unique(deps),
                **more
            )
        else:
            deps = _unique(deps + tests.get("deps", []))
            _py_test(name, sources, deps, used.get("nightly", []), used.get("only_nightly", []), more)
    if group:
        lite_py_library(
            name = group,
            visibility = ["//:__subpackages__"],
            deps = [":" + file for file in libraries],
        )
