#!/usr/bin/env python
"""Measures which functions of our shared objects run most, and writes them down for the linker.

    python scripts/measure_link_order.py            # some five minutes; needs Debian's valgrind

A program trains two small models on the jax device and records the operations that
bench_runtime.py times; valgrind's callgrind counts instructions, once the graphs are compiled.
bazel/link_order/symbols.txt gets the functions that execute 99 % of those of our libraries, by
falling count. Counts are of instructions and not of time, so another run gives the same order but
for functions that are equal or nearly so.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_SYMBOLS = _ROOT / "bazel" / "link_order" / "symbols.txt"
_LIBRARIES = ("libtorch_xla_lite.so", "_XLAC.so")
_SHARE = 0.99
_HEADER = """\
# The functions that execute {share:.0%} of the instructions of our libraries when two models are
# trained and operations recorded, most used first. To measure them again, when the recorder has
# changed much:
#   python scripts/measure_link_order.py
"""


def counts(profile: str) -> collections.Counter[str]:
    """Instructions that each function of our libraries executed itself, from callgrind's file.

    The file is written without compression: `ob=` names the library and `fn=` the function that the
    lines of costs below belong to. The line after `calls=` is what the callee cost.
    """
    total: collections.Counter[str] = collections.Counter()
    ours, function, callee = False, "", False
    for line in profile.splitlines():
        if line.startswith("ob="):
            ours = line.rpartition("/")[2] in _LIBRARIES
        elif line.startswith("fn="):
            # What follows a dot (.isra.0) is a name of one compiler's; 'n marks recursion.
            function = line[3:].partition(".")[0].partition("'")[0]
        elif line.startswith("calls="):
            callee = True
        elif line[:1].isdigit():
            if ours and not callee and function.startswith("_Z"):
                total[function] += int(line.split()[1])
            callee = False
    return total


def hottest(total: collections.Counter[str], share: float) -> list[str]:
    """The fewest functions that have that share of all instructions, by falling count."""
    ranked = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    wanted, sum_so_far, names = share * total.total(), 0, []
    for name, count in ranked:
        if sum_so_far >= wanted:
            break
        names.append(name)
        sum_so_far += count
    return names


def work() -> None:
    """What is measured, run inside valgrind: once to compile, then again while it counts."""
    import bench_runtime
    import torch

    import torch_xla_lite

    trainings = [
        bench_runtime.TorchTraining(case, "adam", "jax")
        for case in bench_runtime.MODELS
        if case.name in ("mlp", "transformer")
    ]
    bench_runtime.OPS = 100
    start, operand = torch.ones(4, 4).jax(), torch.eye(4).jax()

    def everything() -> None:
        for training in trainings:
            training.step()
        for _, chain, _ in bench_runtime.RECORDED:
            chain(start, operand)
        torch_xla_lite.sync()

    everything()
    everything()
    control = ["callgrind_control", "--instr=on", str(os.getpid())]
    subprocess.run(control, check=True, stdout=subprocess.DEVNULL)
    everything()
    everything()


def measure() -> collections.Counter[str]:
    """Runs the work under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "profile")
        command = [
            "valgrind",
            "--tool=callgrind",
            "--demangle=no",
            "--instr-atstart=no",
            "--compress-strings=no",
            "--compress-pos=no",
            f"--callgrind-out-file={profile}",
            sys.executable,
            __file__,
            "--work",
        ]
        subprocess.run(command, check=True)
        return counts(profile.read_text())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    if parser.parse_args().work:
        work()
        return 0
    total = measure()
    names = hottest(total, _SHARE)
    _SYMBOLS.write_text(_HEADER.format(share=_SHARE) + "".join(f"{name}\n" for name in names))
    print(f"{_SYMBOLS.relative_to(_ROOT)}: {len(names)} of the {len(total)} functions that ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
