"""Reads Bazel's profile: when each action ran, and the critical path.

    profile = read(Path("build/profile.gz"))
    profile.spans["bazel-out/k8-opt/bin/csrc/_objs/shape/shape.pic.o"].seconds      # 1.65

Bazel writes the outputs of actions to it only with the options of `--config=report`.
"""

import collections
import gzip
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

_PROCESS = "Remote execution process wall time"


class Span(NamedTuple):
    """When the process of an action ran, or its result was taken from a cache.

    Attributes:
      start: in seconds since the start of the build.
      seconds: from its start to its end.
    """

    start: float
    seconds: float


class Profile(NamedTuple):
    """A build.

    Attributes:
      spans: primary output -> when its action ran.
      critical_path: Bazel's descriptions of the actions on it, and their seconds.
    """

    spans: Mapping[str, Span] = {}
    critical_path: tuple[tuple[str, float], ...] = ()


def read(file: Path) -> Profile:
    """Reads a profile; one that is missing, or that a killed Bazel left, counts as empty."""
    try:
        events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    except (OSError, EOFError, ValueError, zlib.error):
        return Profile()
    processes = collections.defaultdict(list)
    for event in events:
        # As Bazel 4 and Bazel 7 call it.
        if event.get("cat") == _PROCESS or event.get("name") == "subprocess.run":
            processes[event["tid"]].append(event)
    spans = {}
    for event in events:
        if event.get("cat") == "action processing" and "out" in event:
            end = event["ts"] + event["dur"]
            ran = [p for p in processes[event["tid"]] if event["ts"] <= p["ts"] < end]
            # Without its wait for a free processor.
            start, seconds = (ran or [event])[0]["ts"], sum(p["dur"] for p in ran or [event])
            spans[event["out"]] = Span(start / 1e6, seconds / 1e6)
    path = [
        (event["name"].removeprefix("action '").removesuffix("'"), event["dur"] / 1e6)
        for event in events
        # Bazel also lists actions that it only found up to date.
        if event.get("cat") == "critical path component" and event["dur"] >= 1000
    ]
    return Profile(spans, tuple(path))
