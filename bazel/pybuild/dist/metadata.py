"""Converts pyproject.toml into the METADATA and entry_points.txt files of a .dist-info folder.

    metadata = read(root)
    metadata.version                      # "0.1.0"
    metadata.text()                       # "Metadata-Version: 2.4\nName: torch_xla_lite\n..."
    for_wheel(root, options, "13.0.88")   # the same for one wheel: torch_xla_lite_lib 0.1.0+cu130

An isolated build would have to download `packaging` and `pyproject-metadata`, and would not work
offline. So they are not used; a test reads the result with `packaging`.
"""

import re
import tomllib
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild.errors import BuildError
from bazel.pybuild.machine import packages
from bazel.pybuild.options import Options, WheelKind

# In the root of a tree that was unpacked from a source distribution.
PKG_INFO = "PKG-INFO"


class Metadata(NamedTuple):
    """The fields of pyproject.toml that installers and indexes read.

    Attributes:
      name: of the distribution.
      version: by PEP 440.
      summary: one line.
      requires_python: such as >=3.11.
      dependencies: requirement strings.
      extras: requirement strings by name of the extra.
      entry_points: group -> name -> object, such as console_scripts.
      description: the README, in Markdown.
      license: an SPDX expression; empty when pyproject.toml has none.
      license_files: relative to the tree.
      keywords: search terms.
      classifiers: categories of the package index.
      urls: by label.
      authors: their names.
      dynamic: fields of a source distribution that may differ in the wheels built from it.
    """

    name: str
    version: str
    summary: str
    requires_python: str
    dependencies: tuple[str, ...]
    extras: dict[str, tuple[str, ...]]
    entry_points: dict[str, dict[str, str]]
    description: str = ""
    license: str = ""
    license_files: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    classifiers: tuple[str, ...] = ()
    urls: tuple[tuple[str, str], ...] = ()
    authors: tuple[str, ...] = ()
    dynamic: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """Name of the .dist-info folder."""
        return f"{self.name}-{self.version}.dist-info"

    def text(self) -> str:
        """The METADATA file."""
        lines = [
            "Metadata-Version: 2.4",
            f"Name: {self.name}",
            f"Version: {self.version}",
            *(f"Dynamic: {field}" for field in self.dynamic),
            f"Summary: {self.summary}",
        ]
        if self.authors:
            lines.append(f"Author: {', '.join(self.authors)}")
        if self.license:
            lines.append(f"License-Expression: {self.license}")
        lines += [f"License-File: {file}" for file in self.license_files]
        if self.keywords:
            lines.append(f"Keywords: {','.join(self.keywords)}")
        lines += [f"Classifier: {classifier}" for classifier in self.classifiers]
        lines += [f"Project-URL: {label}, {url}" for label, url in self.urls]
        lines.append(f"Requires-Python: {self.requires_python}")
        lines += [f"Requires-Dist: {dependency}" for dependency in self.dependencies]
        for extra, dependencies in self.extras.items():
            lines.append(f"Provides-Extra: {extra}")
            lines += [f"Requires-Dist: {_only_for(extra, name)}" for name in dependencies]
        if self.description:
            lines += ["Description-Content-Type: text/markdown", "", self.description.rstrip("\n")]
        return "\n".join(lines) + "\n"

    def entry_points_text(self) -> str:
        """The entry_points.txt file; empty when there are none."""
        sections = []
        for group, entries in self.entry_points.items():
            sections.append(
                "".join([f"[{group}]\n", *(f"{name} = {what}\n" for name, what in entries.items())])
            )
        return "\n".join(sections)


def read(root: Path, version: str | None = None) -> Metadata:
    """Reads pyproject.toml and the files that it names.

    Args:
      root: of the tree.
      version: overrides the version in the tree.

    Raises:
      BuildError: [project] has a key that is not converted.
    """
    with (root / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    # Each key is removed when it is read.
    take = project.pop
    in_tree, extras, urls = take("version"), take("optional-dependencies", {}), take("urls", {})
    scripts = {"console_scripts": take("scripts")} if "scripts" in project else {}
    described = Metadata(
        name=take("name"),
        version=version or _released(root) or in_tree,
        summary=take("description"),
        requires_python=take("requires-python"),
        dependencies=tuple(take("dependencies")),
        extras={name: tuple(extra) for name, extra in extras.items()},
        entry_points={**take("entry-points", {}), **scripts},
        description=_description(root, take("readme", ""), urls.get("Source", "")),
        license=take("license", ""),
        license_files=tuple(
            str(found.relative_to(root))
            for pattern in take("license-files", ())
            for found in sorted(root.glob(pattern))
        ),
        keywords=tuple(take("keywords", ())),
        classifiers=tuple(take("classifiers", ())),
        urls=tuple(urls.items()),
        authors=tuple(author["name"] for author in take("authors", ())),
    )
    if project:
        raise BuildError(
            f"pyproject.toml: [project] has {', '.join(project)}, which would have no effect.",
            "Remove it, or convert it in bazel/pybuild/dist/metadata.py.",
        )
    return described


def for_wheel(root: Path, options: Options, cuda: str) -> Metadata:
    """The metadata of a wheel: of the whole package or a part of it.

    Args:
      root: of the tree.
      options: say what the wheel contains, and may override the version.
      cuda: version of the toolkit that its CUDA library is compiled with; empty without one. It
        becomes part of the version, so that an index can have wheels with and without CUDA.
    """
    described = read(root, options.version)
    described = described._replace(dependencies=packages.exact(described.dependencies))
    # pip requires that a wheel has the version of the source distribution that it is built from.
    if cuda and "+" not in described.version and not is_from_sdist(root):
        local = "".join(cuda.split(".")[:2])
        described = described._replace(version=f"{described.version}+cu{local}")
    return _for_kind(described, options.wheel_kind)


def is_from_sdist(root: Path) -> bool:
    """Whether a tree was unpacked from a source distribution."""
    return (root / PKG_INFO).exists()


def _for_kind(described: Metadata, kind: WheelKind) -> Metadata:
    """The metadata of a wheel that contains only a part of the package.

    The libraries require no Python package; the Python code requires the libraries of its version.
    """
    library = f"{described.name}_lib"
    if kind is WheelKind.LIBRARY:
        return described._replace(
            name=library,
            summary=f"Libraries and headers of {described.name}, for all versions of Python",
            dependencies=(),
            extras={},
            entry_points={},
        )
    if kind is WheelKind.PYTHON:
        return described._replace(
            name=f"{described.name}_python",
            summary=f"Python code of {described.name}, without the libraries that it requires",
            dependencies=(*described.dependencies, f"{library}=={described.version}"),
        )
    return described


def _only_for(extra: str, requirement: str) -> str:
    name, _, marker = (part.strip() for part in requirement.partition(";"))
    return f'{name}; ({marker}) and extra == "{extra}"' if marker else f'{name}; extra == "{extra}"'


def _released(root: Path) -> str:
    """The version of the source distribution that a tree was unpacked from; it may differ from the
    one in pyproject.toml."""
    file = root / PKG_INFO
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    found = re.search(r"^Version: (.*)$", text, re.MULTILINE)
    return found[1] if found else ""


def _description(root: Path, readme: str, source: str) -> str:
    """The README for package indexes, which have no other file of the tree.

    Links to files become links to `source`; without one, the text of the link and the path.
    """
    if not readme:
        return ""

    def absolute(link: "re.Match[str]") -> str:
        text, target = link[1], link[2]
        path = target.partition("#")[0]
        if not path or not (root / path).exists():
            return link[0]
        if not source:
            return text if text == path else f"{text} ({path})"
        kind = "raw" if Path(path).suffix in (".svg", ".png", ".gif") else "blob"
        return f"[{text}]({source}/{kind}/HEAD/{target})"

    text = (root / readme).read_text(encoding="utf-8")
    return re.sub(r"\[([^\]]*)\]\(([^)\s]+)\)", absolute, text)
