#!/usr/bin/env python3
"""Writes compile_commands.json, which tells clangd how each C++ file of this project is compiled.

    python setup.py develop                # once, to configure Bazel
    python scripts/compile_commands.py     # again after a change of a BUILD file

The commands come from Bazel's action graph; nothing is compiled. The paths of external headers lead
to Bazel's folder of external repositories. The file is written only if its content changes, so that
clangd does not index all files again. Exit code 1 if Bazel fails; its messages say why.
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from bazel.pybuild import options  # noqa: E402
from bazel.pybuild.machine import find_bazel  # noqa: E402

FILE = "compile_commands.json"

_QUERY = 'mnemonic("CppCompile", deps(//torch_xla_lite/... + kind(cc_test, //...)))'
# clang does not know these options of gcc.
_ONLY_GCC = {"-fno-canonical-system-headers", "-Wno-free-nonheap-object"}


def entries(graph: dict, execution_root: Path) -> list[dict]:
    """The content of compile_commands.json.

    Args:
      graph: Bazel's actions as JSON.
      execution_root: the folder in which Bazel runs them.
    """
    folders = {
        "external/": f"{execution_root.parents[1]}/external/",
        "bazel-out/": f"{execution_root}/bazel-out/",
    }
    found, of_units = {}, {}
    for action in graph["actions"]:
        words = []
        for word in action["arguments"]:
            folder = next((name for name in folders if word.startswith(name)), None)
            if word not in _ONLY_GCC:
                words.append(folders[folder] + word.removeprefix(folder) if folder else word)
        place = words.index("-c") + 1
        source = Path(words[place])
        if not source.is_absolute():
            found[str(source)] = words
        elif source.name.endswith(".unit.cc"):
            # Includes the sources of a lite_cc_test.
            folder = str(source.parent).partition("/bin/")[2]
            for file in (ROOT / folder).glob("*.cc"):
                name = f"{folder}/{file.name}"
                of_units[name] = [*words[:place], name, *words[place + 1 :]]
    commands = of_units | found
    return [
        {"directory": str(ROOT), "file": name, "arguments": commands[name]}
        for name in sorted(commands)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    bazel = [find_bazel.default(), *options.read(os.environ).startup_options]

    def ask(*arguments: str) -> str:
        command = [*bazel, *arguments]
        return subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    try:
        execution_root = Path(ask("info", "--ui_event_filters=-info", "execution_root").strip())
        form = ["--output=jsonproto", "--include_artifacts=false", "--ui_event_filters=-info"]
        graph = json.loads(ask("aquery", "--noshow_progress", *form, _QUERY))
    except subprocess.CalledProcessError as error:
        print(f"error: Bazel failed:  {shlex.join(error.cmd)}", file=sys.stderr)
        return 1
    commands = entries(graph, execution_root)
    text = json.dumps(commands, indent=1) + "\n"
    file = ROOT / FILE
    written = not file.exists() or file.read_text(encoding="utf-8") != text
    if written:
        file.write_text(text, encoding="utf-8")
    print(f"{FILE}: {len(commands)} files, {'written' if written else 'unchanged'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
