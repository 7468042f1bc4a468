"""What an installer is told about the package: the files of a .dist-info folder, from
pyproject.toml.

    metadata = read(root)
    metadata.version                          # "0.1.0"
    metadata.text()                           # "Metadata-Version: 2.4\nName: torch_xla_lite\n..."
    for_content(metadata, Content.LIBRARY)    # the same for torch_xla_lite_lib
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from bazel.pybuild.options import Content


class Metadata(NamedTuple):
    """The fields of pyproject.toml that installers and indexes read.

    Attributes:
      name: of the distribution.
      version: as in pyproject.toml.
      summary: one line.
      requires_python: such as >=3.11.
      dependencies: requirement strings.
      extras: requirement strings by name of the extra.
      entry_points: group -> name -> object, such as console_scripts.
      description: the README, in Markdown.
      license: an SPDX expression; empty when pyproject.toml has none.
      license_files: relative to the tree.
      keywords: for those who search.
      classifiers: of the index.
      urls: by label.
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
            f"Summary: {self.summary}",
        ]
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
            lines += [
                f'Requires-Dist: {dependency}; extra == "{extra}"' for dependency in dependencies
            ]
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


def read(root: Path) -> Metadata:
    """Reads pyproject.toml and the files that it names."""
    with (root / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    return Metadata(
        name=project["name"],
        version=project["version"],
        summary=project["description"],
        requires_python=project["requires-python"],
        dependencies=tuple(project["dependencies"]),
        extras={
            name: tuple(extra) for name, extra in project.get("optional-dependencies", {}).items()
        },
        entry_points=_entry_points(project),
        description=_text(root, project.get("readme", "")),
        license=project.get("license", ""),
        license_files=tuple(
            str(found.relative_to(root))
            for pattern in project.get("license-files", ())
            for found in sorted(root.glob(pattern))
        ),
        keywords=tuple(project.get("keywords", ())),
        classifiers=tuple(project.get("classifiers", ())),
        urls=tuple(project.get("urls", {}).items()),
    )


def for_content(described: Metadata, content: Content) -> Metadata:
    """The same package for a wheel that holds only a part of it.

    The libraries need nothing of Python's; the Python code needs the libraries of its own version.
    """
    library = f"{described.name}_lib"
    if content is Content.LIBRARY:
        return described._replace(
            name=library,
            summary=f"Libraries and headers of {described.name}, for all versions of Python",
            dependencies=(),
            extras={},
            entry_points={},
        )
    if content is Content.PYTHON:
        requirement = f"{library}=={described.version}"
        return described._replace(dependencies=(*described.dependencies, requirement))
    return described


def _entry_points(project: dict[str, Any]) -> dict[str, dict[str, str]]:
    groups = dict(project.get("entry-points", {}))
    if "scripts" in project:
        groups["console_scripts"] = project["scripts"]
    return groups


def _text(root: Path, name: str) -> str:
    return (root / name).read_text(encoding="utf-8") if name else ""
