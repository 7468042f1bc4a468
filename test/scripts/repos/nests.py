"""Repositories with submodules, for tests of update_repos.py."""

from test.scripts.repos.world import World


class Nest:
    """A repository with a submodule that has one itself: servers, and a clone of all."""

    def __init__(self, world: World):
        self.leaf = world.server("leaf")
        self.middle = world.server("middle")
        self.middle.add_submodule(self.leaf, "leaf")
        self.top = world.server("a")
        self.top.add_submodule(self.middle, "middle")
        self.clone = world.clone(self.top, "a", "--recursive")
        self.in_middle = world.repo(self.clone.path / "middle")
        self.in_leaf = world.repo(self.clone.path / "middle" / "leaf")

    def advance(self) -> tuple[str, str, str]:
        """New commits in all three, each recording the one below."""
        leaf = self.leaf.commit()
        middle = self.middle.bump("leaf")
        return self.top.bump("middle"), middle, leaf
