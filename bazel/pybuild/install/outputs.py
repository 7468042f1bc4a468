"""Built files to their places in the package: all or none, and only those that differ.

    changed = install(outcome.outputs, root)      # {"torch_xla_lite/_XLAC.so": True, ...}

A file that did not change keeps its time, so that whoever watches it (a debugger, another build)
sees no change. A file that did is written beside its place and moved there at once: a process that
has the old one mapped keeps it, and nobody ever sees half of one.
"""

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from bazel.pybuild.invocation.events import Output

# What was installed by the build before, and how to see cheaply that neither side of a copy was
# touched since.
RECORD = Path("build") / "installed.json"


def install(
    outputs: Iterable[Output],
    root: Path,
    check: Callable[[list[Output]], None] = lambda new: None,
) -> dict[str, bool]:
    """Copies files into the tree.

    Args:
      outputs: of one build; all that the package needs.
      root: of the tree.
      check: called with the files whose content is new, if any; what it raises leaves all in the
        tree as it was.

    Returns:
      For each path whether its content is new. A file that an earlier build installed and this one
      has not is removed.
    """
    before = _read_record(root)
    outputs = list(outputs)
    changed = {output.path: not _unchanged(output, root, before) for output in outputs}
    stale = [path for path in before if path not in changed]
    new = [output for output in outputs if changed[output.path]]
    if (
        not new
        and not stale
        and all(_stamp(output, root) == before.get(output.path) for output in outputs)
    ):
        return changed

    if new:
        check(new)
    staged = [(_stage(output, root), root / output.path) for output in new]
    for temporary, place in staged:
        temporary.replace(place)
    for path in stale:
        (root / path).unlink(missing_ok=True)
    _write_record(root, {output.path: _stamp(output, root) for output in outputs})
    return changed


def copy(outputs: Iterable[Output], folder: Path) -> dict[str, bool]:
    """Copies files into a folder other than the tree, such as a wheel's; nothing is recorded.

    Returns:
      For each path whether its content is new.
    """
    changed = {}
    for output in outputs:
        place = folder / output.path
        changed[output.path] = not (place.exists() and _same_content(output.file, place))
        if changed[output.path]:
            _stage(output, folder).replace(place)
    return changed


def recorded(root: Path) -> list[str]:
    """Paths that `install` has put into the tree, relative to it."""
    return list(_read_record(root))


def remove(root: Path) -> list[str]:
    """Removes what `install` has put into the tree and returns the paths that were there."""
    removed = []
    for path in recorded(root):
        place = root / path
        if place.exists():
            place.unlink()
            removed.append(path)
    (root / RECORD).unlink(missing_ok=True)
    return removed


def _unchanged(output: Output, root: Path, before: Mapping[str, list[int]]) -> bool:
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
    """A copy beside the place of a file, ready to be moved there."""
    place = root / output.path
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_name(f".{place.name}.new")
    # A leftover of an interrupted build may be there, and may be read-only.
    temporary.unlink(missing_ok=True)
    import shutil

    shutil.copyfile(output.file, temporary)
    temporary.chmod(0o755 if ".so" in place.suffixes else 0o644)
    return temporary


def _stamp(output: Output, root: Path) -> list[int]:
    """Size, time and identity of a built file and of its installed copy."""
    stamp = []
    for file in (output.file, root / output.path):
        try:
            status = os.stat(file)
        except OSError:
            return []
        stamp += [status.st_size, status.st_mtime_ns, status.st_ino]
    return stamp


def _read_record(root: Path) -> dict[str, list[int]]:
    try:
        return json.loads((root / RECORD).read_text())
    except (OSError, ValueError):
        return {}


def _write_record(root: Path, record: Mapping[str, list[int]]) -> None:
    file = root / RECORD
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f".{file.name}.new")
    temporary.write_text(json.dumps(record, indent=1) + "\n")
    temporary.replace(file)
