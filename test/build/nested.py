"""A small copy of this tree with a Bazel, a Python and caches of its own, for tests that really
build.

What setup.py and Bazel consist of is copied as it is, as far as it is an input of the test: of
bazel/pybuild what configures a tree, or all with `//test:setup_files`, for tests that call
setup.py. The C++ code is replaced by two short sources.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bazel.pybuild.dist import sources
from bazel.pybuild.machine import find_bazel
from test.build.environments import environment
from test.build.tree import ROOT, copied, inputs, source_files

COPIED = (
    *(name for name in sources.root_files(ROOT) if not name.endswith(".md")),
    "bazel",
    "third_party",
)
# Bazel takes no file of one repository for an input of another.
OF_OTHER_REPOSITORIES = ("third_party/bazel_rules/modules/",)
OUTPUTS = "//torch_xla_lite:outputs"
NOTHING = {"compile": 0, "link": 0, "other": 0}
_SMALL = Path(__file__).parent / "testdata" / "small"
_IGNORED = """\
/bazel-*
/build/
/dist/
/.bazelrc.generated*
*.so
_build_info.py
*.pyc
"""

Edit = Callable[[bytes], bytes]


def a_comment(content: bytes) -> bytes:
    """The content of a file of C++ code with a comment that it never had."""
    return content + b"// %d\n" % time.time_ns()


def _overlay(source: Path, target: Path, changed: list[str], edit: Edit) -> None:
    target.mkdir()
    first, *rest = changed
    for entry in source.iterdir():
        if entry.name != first:
            (target / entry.name).symlink_to(entry)
    if rest:
        _overlay(source / first, target / first, rest, edit)
    else:
        (target / first).write_bytes(edit((source / first).read_bytes()))


class Nested:
    """A tree to build in.

    Attributes:
      root: of the tree.
      python: of an environment of its own.
      shared: what trees of one test share: Bazel's own files, the home and the user's cache folder.
    """

    def __init__(self, folder: Path, shared: Path):
        """Makes the tree, and `folder` for all that is this tree's own."""
        self.python = environment(folder / "environment")
        self.shared = shared
        self._git = ["git", f"--git-dir={folder / 'git'}", "--work-tree=."]
        files = source_files(*COPIED)
        files = [file for file in files if str(file).startswith(OF_OTHER_REPOSITORIES)]
        self.root = copied(folder / "tree", [*inputs(*COPIED), *files])
        package = self.root / "torch_xla_lite"
        package.mkdir()
        shutil.copy2(_SMALL / "BUILD.bazel.txt", package / "BUILD.bazel")
        for name in ("__init__.py", "device/autoload.py"):
            (package / name).parent.mkdir(exist_ok=True)
            (package / name).write_text("")
        self.write("include/torch_xla_lite/one.h", "int one();\n")
        self.write("one.cc", "int one() { return 1; }\n")
        self.write("two.cc", "int one();\nint two() { return one() + 1; }\n")
        self.git("init", "--quiet", "--initial-branch=main")
        (folder / "git" / "info" / "exclude").write_text(_IGNORED)
        self.keep()

    def git(self, *arguments: str) -> None:
        """Runs git, whose folder is outside the tree."""
        self.run(*self._git, *arguments, check=True)

    def keep(self) -> None:
        """Commits all that is there, for `restore`."""
        self.git("add", "--all", ".")
        author = ("-c", "user.name=A Tester", "-c", "user.email=tester@example.org")
        self.git(*author, "commit", "--quiet", "--allow-empty", "--message=a change")
        self._packages = {entry.name for entry in self.site.iterdir()}

    def restore(self) -> None:
        """Puts back what a test has done to the sources and to the packages of `python`. What was
        built stays."""
        self.git("checkout", "--quiet", "--force", "main")
        self.git("clean", "--quiet", "--force", "-d")
        for entry in self.site.iterdir():
            if entry.name not in self._packages:
                folder = entry.is_dir() and not entry.is_symlink()
                shutil.rmtree(entry) if folder else entry.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """While this lasts, a user may write into no folder of the tree."""
        folders = [self.root, *(path for path in self.root.rglob("*") if path.is_dir())]
        folders = [folder for folder in folders if not folder.is_symlink()]
        for folder in folders:
            folder.chmod(0o555)
        try:
            yield
        finally:
            for folder in folders:
                folder.chmod(0o755)

    def write(self, name: str, content: str) -> None:
        """Writes a source of the package."""
        file = self.root / "torch_xla_lite" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)

    def add(self, *scripts: str) -> None:
        """Copies files of this tree that most tests do not need."""
        copied(self.root, map(Path, scripts))

    def append(self, name: str, text: str) -> None:
        """Appends to a file of the tree."""
        with (self.root / name).open("a") as file:
            file.write(text)

    @property
    def site(self) -> Path:
        """Where packages are installed for `python`."""
        (folder,) = self.python.parent.parent.glob("lib/python3*/site-packages")
        return folder

    @property
    def outputs(self) -> list[Path]:
        """The places of what is built."""
        package = self.root / "torch_xla_lite"
        return [package / "_build_info.py", package / "lib" / "libtorch_xla_lite.so"]

    def identity(self) -> list[tuple[int, int]]:
        """Differs if an output was written again."""
        return [(file.stat().st_ino, file.stat().st_mtime_ns) for file in self.outputs]

    def environ(self, **changes: str) -> dict[str, str]:
        """Variables for a command in the tree."""
        # What Bazel sets for a test would make the inner Bazel believe that it is one.
        names = ("LANG", "PATH", "TORCH_XLA_LITE_BAZEL")
        kept = {name: os.environ[name] for name in names if name in os.environ}
        startup = f"--output_user_root={self.shared / 'bazel'} --max_idle_secs=60"
        return {
            **kept,
            "HOME": str(self.shared / "home"),
            "XDG_CACHE_HOME": str(self.shared / "cache"),
            "TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS": startup,
            **changes,
        }

    def run(
        self, *command: str | Path, check: bool = False, **changes: str
    ) -> "subprocess.CompletedProcess[str]":
        """Runs a command in the tree; with `check`, it has to succeed."""
        process = subprocess.run(
            command,
            cwd=self.root,
            env=self.environ(**changes),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert process.returncode == 0 or not check, process.stdout + process.stderr
        return process

    def setup(self, *arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
        """Runs setup.py."""
        return self.run(self.python, "setup.py", *arguments, **changes)

    def must(self, *arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
        """Runs setup.py, which has to succeed."""
        return self.run(self.python, "setup.py", *arguments, check=True, **changes)

    def develop(self, **changes: str) -> dict[str, Any]:
        """Runs `setup.py develop`, which has to succeed, and returns its report."""
        self.must("develop", **changes)
        return self.report()

    def report(self) -> dict[str, Any]:
        """What the last build did."""
        return json.loads((self.root / "build" / "report.json").read_text())

    def start(
        self, *command: str | Path, stderr: int = subprocess.PIPE, **changes: str
    ) -> "subprocess.Popen[str]":
        """Starts `setup.py develop` or another command, in a process group of its own."""
        return subprocess.Popen(
            command or [self.python, "setup.py", "develop"],
            cwd=self.root,
            env=self.environ(**changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        )

    def at_work(self, **changes: str) -> "subprocess.Popen[str]":
        """A `develop` that has got so far that Bazel works, or has ended."""
        events = self.root / "build" / "events.json"
        events.unlink()
        process = self.start(**changes)
        while process.poll() is None and not events.exists():
            time.sleep(0.005)
        return process

    def configure(self, **changes: str) -> None:
        """Writes the settings of Bazel, as setup.py does before it calls it."""
        self.run(self.python, "-m", "bazel.pybuild.configure", check=True, **changes)

    def build(self, *options: str, **changes: str) -> None:
        """Configures the tree and calls Bazel, which writes the same log as for setup.py."""
        self.configure(**changes)
        (self.root / "build").mkdir(exist_ok=True)
        self.bazel("build", "--config=report", *options, OUTPUTS, check=True, **changes)

    def bazel(
        self, *arguments: str, check: bool = False, **changes: str
    ) -> "subprocess.CompletedProcess[str]":
        """Runs Bazel as a user does, by hand."""
        return self.run(*self._bazel(), *arguments, check=check, **changes)

    def run_bazel(self, *arguments: str, **changes: str) -> "subprocess.CompletedProcess[str]":
        """Runs Bazel as scripts/test.sh does."""
        module = "bazel.pybuild.commands.run_bazel"
        return self.run(self.python, "-m", module, *arguments, **changes)

    def _bazel(self) -> list[str]:
        startup = self.environ()["TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS"]
        return [find_bazel.default(), *startup.split()]

    def servers(self) -> set[str]:
        """Folders of Bazel's servers for this tree and those that share with it."""
        return {path.parent.name for path in (self.shared / "bazel").glob("*/server")}

    def reinstall(self, name: str, changed: str = "", edit: Edit = a_comment) -> None:
        """Installs a package again, by links to its files; the `changed` one is edited."""
        folders = [Path(line) for line in (self.site / "ours.pth").read_text().split()]
        (info,) = [info for folder in folders for info in folder.glob(f"{name}-*.dist-info")]
        shutil.copytree(info, self.site / info.name)
        record = self.site / info.name / "RECORD"
        os.utime(record)
        if changed:
            record.write_text(f"{record.read_text()}{changed},sha256=other,1\n")
            _overlay(info.parent / name, self.site / name, changed.split("/"), edit)
        else:
            (self.site / name).symlink_to(info.parent / name)

    def close(self) -> None:
        """Ends Bazel's server for this tree."""
        self.bazel("shutdown")


class First(NamedTuple):
    """A tree, and what its first `develop` did."""

    tree: Nested
    report: dict[str, Any]
    profile: dict[str, Any]
