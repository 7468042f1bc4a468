"""Lists source files, for the BUILD files that export them and for tests that build in a copy of this tree."""

load("//bazel:packages.bzl", "PACKAGES")

# The files in the root of the tree. bazel/pybuild/dist/sources.py reads this list, too.
ROOT_FILES = [
    ".bazelignore",
    ".bazelrc",
    ".bazeliskrc",
    ".clang-format",
    "BUILD.bazel",
    "CHANGELOG.md",
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

def lite_source_files():
    """Exports all source files of the package, and lists them as :source_files."""
    files = native.glob(
        ["**"],
        # What Python and `setup.py develop` write into the source folders.
        exclude = [
            "**/__pycache__/**",
            "_XLAC*.so",
            "_build_info.py",
            "lib/*.so",
        ],
    )
    native.exports_files(files)
    native.filegroup(
        name = "source_files",
        srcs = files,
        visibility = ["//:__subpackages__"],
    )

def source_files_of(folder, without = None):
    """The :source_files of a folder and of all below it.

    Args:
      folder: relative to the root; "" for all but the root.
      without: a folder whose files are left out.

    Returns:
      Labels.
    """
    return [
        "//%s:source_files" % package
        for package in PACKAGES
        if _is_below(package, folder) and (without == None or not _is_below(package, without))
    ]

def _is_below(package, folder):
    return not folder or (package + "/").startswith(folder + "/")
