"""Copies built files into the package: all or none, and only those that differ.

    changed = install(outcome.outputs, root)      # {"torch_xla_lite/_XLAC.so": True, ...}

An unchanged file keeps its time, so that programs that watch it (a debugger, another build) notice
no change. A changed file is copied beside its place and then renamed: a process that has mapped the
old file keeps it, and no process reads an incomplete file.
"""

import json
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild import files, interrupts
from bazel.pybuild.call.events import Output
from bazel.pybuild.dist import sources
from bazel.pybuild.errors import BuildError

# The files that the previous build installed, with the state of both sides of each copy. The
# contents are compared only if that state has changed.
RECORD = Path("build") / "installed.json"


def install(
    outputs: Iterable[Output],
    root: Path,
    check: Callable[[list[Output]], None] = lambda new: None,
) -> dict[str, bool]:
    """Copies files into the tree.

    Args:
      outputs: all files of one build.
      root: of the tree.
      check: called with the changed files, if any; if it raises, the tree does not change.

    Returns:
      For each path whether its content changed. A file of an earlier build that is not among the
      outputs is removed.

    Raises:
      BuildError: a path is outside the tree; nothing was copied.
      KeyboardInterrupt: no file was replaced, or all were; then it has a message that says so.
    """
    before = _read_record(root)
    outputs = list(outputs)
    for output in outputs:
        if not files.is_inside(root / output.path, root):
            link = next(place for place in (root / output.path).parents if place.is_symlink())
            raise BuildError(
                f"{link} is a link to a folder outside this tree, and {output.path} with it.",
                f"Remove the link:  rm {link}",
            )
    changed = {output.path: not _unchanged(output, root, before) for output in outputs}
    stale = [path for path in installed(root) if path not in changed]
    new = [output for output in outputs if changed[output.path]]
    if not new and {output.path: _stamp(output, root) for output in outputs} == before:
        return changed

    if new:
        check(new)
    staged = [(_stage(output, root), root / output.path) for output in new]
    with _without_interrupts():
        for temporary, place in staged:
            temporary.replace(place)
        for path in stale:
            files.remove(root / path)
        record = {output.path: _stamp(output, root)._asdict() for output in outputs}
        files.replace(root / RECORD, json.dumps(record, indent=1) + "\n")
    return changed


class _Stamp(NamedTuple):
    """Size, times and identity of a built file and of its installed copy; empty without the file.

    Attributes:
      built: of the file that Bazel wrote.
      installed: of its copy in the package.
    """

    built: tuple[int, ...]
    installed: tuple[int, ...]


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Delays Ctrl-C and the like for the few milliseconds in which some files are new and others
    old."""
    signal.pthread_sigmask(signal.SIG_BLOCK, interrupts.awaited())
    try:
        yield
    finally:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupts.awaited())
        except KeyboardInterrupt:
            raise KeyboardInterrupt("What was built is in the package.") from None


def copy(outputs: Iterable[Output], folder: Path) -> dict[str, bool]:
    """Copies files into another folder than the tree, such as a wheel's, without a record.

    Returns:
      For each path whether its content changed.
    """
    changed = {}
    for output in outputs:
        place = folder / output.path
        changed[output.path] = not (place.exists() and _same_content(output.file, place))
        if changed[output.path]:
            _stage(output, folder).replace(place)
    return changed


def installed(root: Path) -> list[str]:
    """The existing paths that `install` wrote, relative to the root.

    Paths outside the tree, because of `..` or of a link that replaced a folder, are left out.
    """
    return [
        path
        for path in _read_record(root)
        if os.path.lexists(root / path)
        and files.is_inside(root / path, root)
        and ((root / path).is_symlink() or not (root / path).is_dir())
    ]


def _unchanged(output: Output, root: Path, before: Mapping[str, _Stamp]) -> bool:
    place = root / output.path
    if not place.exists():
        return False
    if _stamp(output, root) == before.get(output.path):
        return True
    return _same_content(output.file, place)


def _same_content(left: Path, right: Path) -> bool:
    if left.stat().st_size != right.stat().st_size:
        return False
    return left.read_bytes() == right.read_bytes()


def _stage(output: Output, root: Path) -> Path:
    """Copies a file to a temporary name beside its place."""
    place = root / output.path
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f".{place.name}.new")
    # An interrupted build may have left a file, which may be read-only.
    temporary.unlink(missing_ok=True)
    import shutil

    shutil.copyfile(output.file, temporary)
    temporary.chmod(0o755 if ".so" in place.suffixes else 0o644)
    return temporary


def _stamp(output: Output, root: Path) -> _Stamp:
    return _Stamp(_state(output.file), _state(root / output.path))


def _state(file: Path) -> tuple[int, ...]:
    try:
        status = os.stat(file)
    except OSError:
        return ()
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)


def _read_record(root: Path) -> dict[str, _Stamp]:
    """The record; empty if it is missing or damaged. Paths that no build writes are left out."""
    try:
        record = json.loads((root / RECORD).read_text())
        return {
            path: _Stamp(tuple(stamp["built"]), tuple(stamp["installed"]))
            for path, stamp in record.items()
            if sources.is_product(path)
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
