"""What is in a folder outside of the workspace."""

def entries(repository_ctx, folder):
    """Lists a folder of an installed package.

    Since 7.1 Bazel watches what a repository rule has listed, and a folder that is gone later ends every command with
    an error of Bazel's own. The variables that the rules depend on tell already when a package is another one.

    Args:
      repository_ctx: of a repository rule.
      folder: its path.

    Returns:
      a list of paths.
    """
    if hasattr(repository_ctx, "watch"):
        return folder.readdir(watch = "no")
    return folder.readdir()
