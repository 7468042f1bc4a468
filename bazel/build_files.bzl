"""What a build consists of beside the sources that it compiles, for tests that build in a copy of this tree."""

def lite_build_files():
    """All files of the package, as :build_files."""
    native.filegroup(
        name = "build_files",
        srcs = native.glob(
            ["**"],
            exclude = ["**/__pycache__/**"],
        ),
        visibility = ["//:__pkg__"],
    )
