"""What an installer is told about the package: the files of a .dist-info folder, from
pyproject.toml.

    metadata = read(root)
    metadata.version                  # "0.1.0"
    metadata.text()                   # "Metadata-Version: 2.1\nName: torch_xla_lite\n..."
"""

import tomllib
from pathlib import Path
from typing import NamedTuple


class Metadata(NamedTuple):
    """The fields of pyproject.toml that an editable install needs.

    Attributes:
      name: of the distribution.
      version: as in pyproject.toml.
      summary: one line.
      requires_python: such as >=3.11.
      dependencies: requirement strings.
      extras: requirement strings by name of the extra.
      entry_points: group -> name -> object, such as console_scripts.
    """

    name: str
    version: str
    summary: str
    requires_python: str
    dependencies: tuple[str, ...]
    extras: dict[str, tuple[str, ...]]
    entry_points: dict[str, dict[str, str]]

    @property
    def folder(self) -> str:
        """Name of the .dist-info folder."""
        return f"{self.name}-{self.version}.dist-info"

    def text(self) -> str:
        """The METADATA file."""
        lines = [
            "Metadata-Version: 2.1",
            f"Name: {self.name}",
            f"Version: {self.version}",
            f"Summary: {self.summary}",
            f"Requires-Python: {self.requires_python}",
        ]
        lines += [f"Requires-Dist: {dependency}" for dependency in self.dependencies]
        for extra, dependencies in self.extras.items():
            lines.append(f"Provides-Extra: {extra}")
            lines += [
                f'Requires-Dist: {dependency}; extra == "{extra}"' for dependency in dependencies
            ]
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
    """Reads pyproject.toml."""
    with (root / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    entry_points = dict(project.get("entry-points", {}))
    if "scripts" in project:
        entry_points["console_scripts"] = project["scripts"]
    return Metadata(
        name=project["name"],
        version=project["version"],
        summary=project["description"],
        requires_python=project["requires-python"],
        dependencies=tuple(project["dependencies"]),
        extras={
            name: tuple(extra) for name, extra in project.get("optional-dependencies", {}).items()
        },
        entry_points=entry_points,
    )
