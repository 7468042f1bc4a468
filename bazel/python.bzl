"""Python rules: sources as run-time files, and tests run by pytest with the interpreter of @python.

Not Bazel's py_test: its stub needs a `python` to start itself with (Debian has none), starts two interpreters a
test, and left Bazel's core in version 8.
"""

load("@python//:python.bzl", "PYTHON")

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
        doc = "Files and targets that are there when the code runs.",
    ),
    "deps": attr.label_list(doc = "Libraries that the code imports."),
    "srcs": attr.label_list(allow_files = [".py"]),
}

lite_py_library = rule(
    implementation = _lite_py_library_impl,
    doc = "Python sources, imported by their path from the workspace root.",
    attrs = _COMMON_ATTRS,
)

_LAUNCHER = """\
#!/bin/sh
# Starts one test target: pytest, with the interpreter that this tree was configured for.
export PYTHONPATH="$PWD" PYTHONDONTWRITEBYTECODE=1
exec '{python}' -P '{runner}' {tests} "$@"
"""

def _lite_py_test_impl(ctx):
    launcher = ctx.actions.declare_file(ctx.label.name)
    ctx.actions.write(
        output = launcher,
        content = _LAUNCHER.format(
            python = PYTHON.executable,
            runner = ctx.file._runner.short_path,
            tests = " ".join(["'%s'" % src.short_path for src in ctx.files.srcs]),
        ),
        is_executable = True,
    )
    return [
        DefaultInfo(
            executable = launcher,
            runfiles = _runfiles(ctx, ctx.files.srcs + [ctx.file._runner, ctx.file._packages]),
        ),
        testing.TestEnvironment(ctx.attr.env),
    ]

_lite_py_test = rule(
    implementation = _lite_py_test_impl,
    attrs = dict(
        _COMMON_ATTRS,
        env = attr.string_dict(doc = "Variables to set."),
        # The environment's packages are not inputs one by one; a change of any runs the tests again.
        _packages = attr.label(allow_single_file = True, default = "@python//:packages.txt"),
        _runner = attr.label(allow_single_file = True, default = "//bazel:pytest_runner.py"),
    ),
    test = True,
)

def lite_py_test(name, srcs, size = "small", **kwargs):
    """Test files, run by pytest.

    Args:
      name: of the target.
      srcs: the test files.
      size: as for all tests: small is 1 minute, medium 5, large 15.
      **kwargs: deps, data, env, tags, shard_count ...
    """
    _lite_py_test(
        name = name,
        size = size,
        srcs = srcs,
        **kwargs
    )

def lite_py_modules(name, modules):
    """A folder of Python files: one target a file, so that an edit runs only the tests that use it, and one for all.

    Args:
      name: of the target that has all of them, and the folder's `__init__.py`.
      modules: name of a file without its ending -> targets that it imports, without those that come with the others.
    """
    for module, deps in modules.items():
        lite_py_library(
            name = module,
            srcs = [module + ".py"],
            deps = deps,
            visibility = ["//:__subpackages__"],
        )
    lite_py_library(
        name = name,
        srcs = ["__init__.py"],
        visibility = ["//:__subpackages__"],
        deps = [":" + module for module in modules],
    )
