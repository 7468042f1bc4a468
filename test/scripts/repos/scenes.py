"""Local work and upstream changes of every kind, as shell commands, and servers to try them on.

scenes = Scenes(folder)
scenes.base("base", {})                               # a server with the paths of BASE
scenes.move_on("moved", "base", {"": "s:to-file"})    # what it is like after a change
scenes.clone("base", path)
scenes.shell(path, STATES["d:to-file"])               # local work
"""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from test.scripts.repos.world import Repo, World

# What both sides start with: a file f, a folder d, a link l and a submodule s; n is not there yet.
# Servers may have several such sets of paths; $x is what the names of a set end in.
BASE = """
echo file > f$x; mkdir d$x; echo a > d$x/a; echo b > d$x/b; ln -s README l$x
"""

# Changes of the server, as shell commands. The letter is the path, as in the states.
CHANGES = {
    "f:modify": "echo theirs > f$x",
    "f:delete": "rm f$x",
    "f:rename": "mv f$x moved$x",
    "f:case": "mv f$x F$x",
    "f:mode": "chmod +x f$x",
    "f:to-dir": "rm f$x; mkdir f$x; echo theirs > f$x/x",
    "f:to-symlink": "rm f$x; ln -s theirs f$x",
    "f:to-submodule": "git rm -q f$x; submodule f$x",
    "d:modify": "echo theirs > d$x/a",
    "d:delete": "rm -r d$x",
    "d:add": "echo theirs > d$x/new",
    "d:rename": "mv d$x moved$x",
    "d:to-file": "rm -r d$x; echo theirs > d$x",
    "d:to-symlink": "rm -r d$x; ln -s theirs d$x",
    "d:to-submodule": "git rm -qr d$x; submodule d$x",
    "l:retarget": "ln -sfn theirs l$x",
    "l:delete": "rm l$x",
    "l:to-file": "rm l$x; echo theirs > l$x",
    "l:to-dir": "rm l$x; mkdir l$x; echo theirs > l$x/x",
    "l:to-submodule": "git rm -q l$x; submodule l$x",
    "s:bump": "git -C s$x checkout -q main",
    "s:address": "git config -f .gitmodules submodule.s$x.url $FORK; git add .gitmodules;"
    " git -C s$x fetch -q $FORK main; git -C s$x checkout -q FETCH_HEAD",
    "s:delete": "git rm -qf s$x",
    "s:rename": "git mv s$x moved$x",
    "s:to-file": "git rm -qf s$x; echo theirs > s$x",
    "s:to-symlink": "git rm -qf s$x; ln -s theirs s$x",
    "s:to-dir": "git rm -qf s$x; mkdir s$x; echo theirs | tee s$x/README > s$x/new",
    "s:to-other": "git rm -qf s$x; rm -rf .git/modules/s$x; submodule s$x $FORK",
    "n:file": "echo theirs > n$x",
    "n:dir": "mkdir n$x; echo theirs > n$x/x",
    "n:symlink": "ln -s theirs n$x",
    "n:submodule": "submodule n$x",
    "i:ignore": "mkdir -p ./$x; printf '*.o\\n/own\\n/d\\n/n\\n*.tmp\\n' > ./$x/.gitignore",
    "i:no-ignore": "mkdir -p ./$x; echo > ./$x/.gitignore",
}

# Local work, as shell commands. The letter is the path that it is at; "-" is the whole repository.
STATES = {
    "-:clean": "",
    "-:ahead": "commit own",
    "-:detached": "git switch -q --detach",
    "-:detached-ahead": "git switch -q --detach; commit own",
    "-:topic": "git switch -q -c topic; commit own",
    "-:merging": "conflict merge",
    "-:rebasing": "conflict rebase",
    "-:picking": "conflict cherry-pick",
    "-:bisecting": "git bisect start",
    "-:locked": "touch .git/index.lock",
    "-:stash": "echo mine | tee f > own; git stash -qu",
    "-:worktree": "git worktree add -q -b linked ../linked; cd ../linked; commit own; echo 2 > f",
    "-:main-elsewhere": "git switch -q -c topic; git worktree add -q ../linked main",
    "f:commit": "commit f",
    "f:topic": "git switch -q -c topic; commit f",
    "f:staged": "echo mine > f; git add f",
    "f:unstaged": "echo mine > f",
    "f:staged-and-unstaged": "echo staged > f; git add f; echo mine > f",
    "f:staged-only": "echo staged > f; git add f; echo file > f",
    "f:staged-as-theirs": "echo theirs > f; git add f",
    "f:unstaged-as-theirs": "echo theirs > f",
    "f:mode": "chmod +x f",
    "f:deleted": "rm f",
    "f:rm": "git rm -q f",
    "f:rm-cached": "git rm -q --cached f",
    "f:rm-then-other": "git rm -q f; echo mine > f",
    "f:to-dir": "rm f; mkdir f; echo mine > f/x",
    "f:to-ignored-dir": "rm f; mkdir f; echo mine > f/x.o",
    "f:rm-to-dir": "git rm -q f; mkdir f; echo mine > f/x",
    "f:to-dir-staged": "rm f; mkdir f; echo mine > f/x; git add -A f",
    "f:to-symlink": "rm f; ln -s mine f",
    "f:to-repository": "rm f; embed f",
    "f:renamed": "git mv f own",
    "f:renamed-as-theirs": "git mv f moved; echo mine > F",
    "f:assume-unchanged": "git update-index --assume-unchanged f; echo mine > f",
    "f:assume-unchanged-clean": "git update-index --assume-unchanged f",
    "f:assume-unchanged-dir": "git update-index --assume-unchanged f; rm f; mkdir f; echo 1 > f/x",
    "f:skip-worktree": "git update-index --skip-worktree f; echo mine > f",
    "f:skip-worktree-gone": "git update-index --skip-worktree f; rm f",
    "f:sparse": "git status -s; git sparse-checkout set --no-cone '/*' '!/f'",
    "d:unstaged": "echo mine > d/a",
    "d:staged": "echo mine > d/a; git add d",
    "d:staged-new": "echo mine > d/new; git add d",
    "d:deleted": "rm -r d",
    "d:deleted-file": "rm d/a",
    "d:rm": "git rm -qr d",
    "d:to-file": "rm -r d; echo mine > d",
    "d:to-ignored-file": "exclude d; rm -r d; echo mine > d",
    "d:to-symlink": "rm -r d; mkdir own; echo mine > own/a; ln -s own d",
    "d:to-symlink-outside": "rm -r d; mkdir ../own; echo mine | tee ../own/a > ../own/new;"
    " ln -s ../own d",
    "d:to-repository": "rm -r d; embed d",
    "d:untracked": "echo mine > d/own",
    "d:untracked-in-the-way": "echo mine > d/new",
    "d:ignored": "echo mine > d/x.o",
    "d:ignored-in-the-way": "exclude new; echo mine > d/new",
    "d:ignored-dir-in-the-way": "exclude new; mkdir d/new; echo mine > d/new/x",
    "d:ignored-link": "exclude own; mkdir own; echo mine > own/x; ln -s ../own d/own",
    "d:repository": "embed d/own",
    "d:ignored-repository": "exclude own; embed d/own",
    "d:assume-unchanged": "git update-index --assume-unchanged d/a; echo mine > d/a",
    "d:renamed": "git mv d own",
    "d:fifo": "mkfifo d/own",
    "l:retargeted": "ln -sfn mine l",
    "l:to-file": "rm l; echo mine > l",
    "l:to-dir": "rm l; mkdir l; echo mine > l/x",
    "l:deleted": "rm l",
    "s:unstaged": "echo mine > s/README",
    "s:staged": "echo mine > s/README; git -C s add README",
    "s:untracked": "echo mine > s/own",
    "s:untracked-in-the-way": "echo mine > s/new",
    "s:ignored": "echo mine > s/x.o",
    "s:ignored-in-the-way": "echo mine > s/ignored.o",
    "s:assume-unchanged": "git -C s update-index --assume-unchanged README; echo mine > s/README",
    "s:ahead": "cd s; commit own",
    "s:branch": "cd s; git switch -qc mine; commit own; git checkout -q --detach HEAD~1",
    "s:on-branch": "cd s; git switch -qc mine; commit own",
    "s:stash": "cd s; echo mine > README; git stash -q",
    "s:bumped": "git -C s checkout -q origin/main",
    "s:bumped-staged": "git -C s checkout -q origin/main; git add s",
    "s:merging": "cd s; conflict merge",
    "s:locked": "touch .git/modules/s/index.lock",
    "s:git-folder": "own_git_folder s",
    "s:git-folder-branch": "own_git_folder s; cd s; git switch -qc mine; commit own;"
    " echo mine > own; git stash -q; git checkout -q --detach HEAD~1",
    "s:git-folder-ignored": "own_git_folder s; echo mine > s/x.o",
    "s:repository-inside": "embed s/own",
    "s:ignored-repository-inside": "embed s/x.o",
    "s:worktree": "git -C s worktree add -q -b mine ../../linked; cd ../linked; echo mine > README",
    "s:deinit": "git submodule -q deinit s",
    "s:deinit-with-files": "git submodule -q deinit s; echo mine > s/new",
    "s:deinit-ignored": "git submodule -q deinit s; echo mine > s/x.o",
    "s:deleted": "rm -r s",
    "s:rm": "git rm -qf s",
    "s:rm-cached": "git rm -q --cached s",
    "s:to-file": "rm -r s; echo mine > s",
    "s:to-symlink": "rm -r s; ln -s d s",
    "s:to-dir": "rm -r s; mkdir s; echo mine > s/new",
    "s:to-repository": "rm -r s; embed s",
    "s:address": "git config submodule.s.url file:///nowhere",
    "n:untracked": "echo mine > n",
    "n:untracked-as-theirs": "echo theirs > n",
    "n:untracked-dir": "mkdir n; echo mine > n/x",
    "n:untracked-beside": "mkdir n; echo mine > n/own",
    "n:symlink": "ln -s d n",
    "n:ignored": "exclude n; echo mine > n",
    "n:ignored-symlink": "exclude n; ln -s mine n",
    "n:ignored-dir": "exclude n; mkdir n; echo mine | tee n/x > n/own",
    "n:ignored-below": "mkdir n; echo mine > n/x.o",
    "n:repository": "embed n",
    "n:ignored-repository": "exclude n; embed n",
    "n:empty-repository": "git init -q n",
    "n:ignored-empty-repository": "exclude n; git init -q n",
    "n:repository-below": "embed n/x",
    "n:staged": "echo mine > n; git add n",
    "n:staged-then-deleted": "echo mine > n; git add n; rm n",
    "n:intended": "echo mine > n; git add -N n",
    "n:empty-dir": "mkdir n",
    "n:fifo": "mkfifo n",
    "i:changed": "echo /mine > .gitignore; echo mine > mine",
    "i:ignored-and-untracked": "echo mine | tee x.o > x.tmp",
}


class Scenes:
    """Servers, and what is done in them and in their clones."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.world = World(folder)
        inner, fork = self.world.server("inner"), self.world.repo(self.server("fork"))
        inner.commit(".gitignore", "*.o\n")
        self.shell(inner.path, "echo theirs | tee README new > ignored.o")
        record(inner, "theirs")
        shutil.copytree(inner.path, fork.path)
        fork.commit("README", "of the fork\n")

    def server(self, name: str) -> Path:
        return self.folder / "servers" / plain(name)

    def shell(self, place: Path, script: str, *, check: bool = True, x: str = "") -> None:
        """Runs commands of this file."""
        inner, fork = (f"file://{self.server(name)}" for name in ("inner", "fork"))
        self.world.repo(place).shell(script, check=check, INNER=inner, FORK=fork, x=x)

    def base(self, name: str, changes: Mapping[str, str]) -> None:
        """Makes a server with a set of paths for each change; its key is what they end in."""
        server = self.world.server(name)
        server.write(".gitignore", "*.o\n")
        for ending, change in {"": "s", **changes}.items():
            self.shell(server.path, BASE, x=ending)
            if change[0] == "s":
                self.shell(server.path, "submodule s$x", x=ending)
        record(server, "base")

    def move_on(self, name: str, base: str, changes: Mapping[str, str]) -> Repo:
        """Makes a server that is another one after changes."""
        server = self.world.repo(self.server(name))
        shutil.copytree(self.server(base), server.path, symlinks=True)
        for ending, change in changes.items():
            self.shell(server.path, CHANGES[change], x=ending)
        record(server, name)
        # Few files are copied in less time than many.
        server.git("repack", "-adq")
        return server

    def clone(self, name: str, path: Path, *options: str) -> None:
        """Clones a server with its submodules."""
        words = ("clone", "-q", "--recursive", *options, f"file://{self.server(name)}", str(path))
        self.world.repo(self.folder).git(*words)
        for folder in path.glob(".git/**/hooks"):
            shutil.rmtree(folder)


def plain(name: str) -> str:
    """A name that a file can have."""
    return re.sub("[: ]", "-", name)


def record(server: Repo, message: str) -> None:
    """Commits all that there is."""
    server.git("add", "--all", "--force")
    server.git("commit", "-q", "--allow-empty", "-m", message)


def point(file: Path, old: Path, new: Path) -> None:
    """Makes a file that names a path name another one."""
    file.write_text(re.sub(rf"{re.escape(str(old))}\b", str(new), file.read_text()))
