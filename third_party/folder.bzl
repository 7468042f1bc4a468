"""Lists folders outside of the workspace, for repository rules."""

def entries(repository_ctx, folder):
    """Lists a folder of an installed package.

    Since 7.1 Bazel watches the folders that a repository rule lists; when one is deleted later, every command fails
    with an internal error. Watching is not needed: the rules depend on variables that change with the packages.

    Args:
      repository_ctx: of a repository rule.
      folder: its path.

    Returns:
      The paths in the folder.
    """
    if hasattr(repository_ctx, "watch"):
        return folder.readdir(watch = "no")
    return folder.readdir()
