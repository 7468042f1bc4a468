"""Repairs the disk cache: Bazel 4 never replaces an entry, so a damaged one would stay for ever.

    damaged(folder)                   # all entries whose content cannot be right
    repair(folder, outcome.made, root)

`cas` holds outputs, each under its SHA-256, and `ac` the results of actions, which name outputs.
"""

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from bazel.pybuild import files


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
        if not _names_outputs(result.read_bytes()):
            yield result


# Fields of ActionResult: files and folders, and symbolic links to both.
_OUTPUTS = frozenset({2, 3, 10, 11, 12})


def _names_outputs(message: bytes) -> bool:
    """Whether a file is a protocol buffer that can be the result of an action."""
    position, fields = 0, set()
    try:
        while position < len(message):
            key, position = _number(message, position)
            fields.add(key >> 3)
            if key & 7 == 2:
                length, position = _number(message, position)
                position += length
            elif key & 7 == 0:
                _, position = _number(message, position)
            else:
                return False
    except IndexError:
        return False
    return position == len(message) and not fields.isdisjoint(_OUTPUTS)


def _number(message: bytes, position: int) -> tuple[int, int]:
    """A number in groups of seven bits, and the position after it."""
    number = shift = 0
    while True:
        byte = message[position]
        number |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return number, position
