"""Repairs the disk cache, in which Bazel 4 never replaces an entry, not even a damaged one.

    damaged(folder)                   # all entries whose content cannot be right
    repair(folder, outcome.made, root)

`cas` holds outputs, each under its SHA-256, and `ac` the results of actions, which name outputs.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from bazel.pybuild import files
from bazel.pybuild.why.execution_log import varint


def damaged(folder: Path) -> Iterator[Path]:
    """Finds damaged entries; reads the whole cache."""
    yield from _wrong_results(folder)
    for blob in folder.glob("cas/*/*"):
        if _hash(blob) != blob.name:
            yield blob


def repair(folder: Path, made: Mapping[str, str], root: Path) -> list[Path]:
    """Replaces damaged entries after a build that could not use them, and returns them.

    Results of actions are removed; the next build that runs the action stores it again.

    Args:
      folder: of the cache.
      made: outputs of the actions that ran, and their hashes.
      root: of the tree, to which the paths of outputs are relative.
    """
    wrong = list(_wrong_results(folder))
    for result in wrong:
        result.unlink(missing_ok=True)
    for path, name in made.items():
        blob = folder / "cas" / name[:2] / name
        if not blob.is_file() or _hash(blob) == name:
            continue
        wrong.append(blob)
        if (root / path).is_file() and _hash(root / path) == name:
            files.replace(blob, (root / path).read_bytes())
        else:
            blob.unlink(missing_ok=True)
    return wrong


def _hash(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _wrong_results(folder: Path) -> Iterator[Path]:
    for result in folder.glob("ac/*/*"):
        if not _is_message(result.read_bytes()):
            yield result


def _is_message(content: bytes) -> bool:
    """Whether content is a protocol buffer of numbers and strings, and not empty."""
    position = 0
    try:
        while position < len(content):
            key, position = varint(content, position)
            if key & 7 not in (0, 2):
                return False
            number, position = varint(content, position)
            position += number if key & 7 == 2 else 0
    except IndexError:
        return False
    return 0 < position == len(content)
