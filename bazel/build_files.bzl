"""Lists source files, for the BUILD files that export them and for tests that build in a copy of this tree."""

# The files in the root of the tree. bazel/pybuild/dist/sources.py reads this list, too.
ROOT_FILES = [
    ".bazelignore",
    ".bazelrc",
    ".bazeliskrc",
    ".clang-format",
    "BUILD.bazel",
    "CONTRIBUTING.md",
    "LICENSE",
    "MODULE.bazel",
    "README.md",
    "WORKSPACE",
    "pyproject.toml",
    "requirements-cuda.txt",
    "requirements.txt",
    "setup.py",
]

def lite_build_files():
    """All source files of the package, as :build_files."""
    native.filegroup(
        name = "build_files",
        srcs = native.glob(
            ["**"],
            # What Python and `setup.py develop` write into the source folders.
            exclude = [
                "**/__pycache__/**",
                "_XLAC*.so",
                "_build_info.py",
                "lib/*.so",
            ],
        ),
        visibility = [
            "//:__pkg__",
            "//test:__pkg__",
        ],
    )
