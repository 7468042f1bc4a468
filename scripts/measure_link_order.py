#!/usr/bin/env python
"""Measures which functions of the shared objects run most, and writes the list for the linker.

    python scripts/measure_link_order.py            # about five minutes; needs Debian's valgrind

A program trains two small models on device jax and records the operations that bench_runtime.py
times; valgrind's callgrind counts instructions after the graphs are compiled. The functions that
execute 99 % of the instructions of our libraries are written to bazel/link_order/symbols.txt, those
with the highest count first. Instructions vary less than times: another run gives the same order,
except for functions with nearly equal counts.
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
# The functions that execute {share:.0%} of the instructions of our libraries while two models are
# trained and operations recorded; the most used first. To measure again, after large changes:
#   python scripts/measure_link_order.py
"""


def counts(profile: str) -> collections.Counter[str]:
    """Instructions of each function of our libraries, without those of its callees.

    `profile` is callgrind's file, uncompressed: `ob=` names the library and `fn=` the function of
    the following lines of costs. The line after `calls=` is the cost of the callee.
    """
    total: collections.Counter[str] = collections.Counter()
    ours, function, callee = False, "", False
    for line in profile.splitlines():
        if line.startswith("ob="):
            ours = line.rpartition("/")[2] in _LIBRARIES
        elif line.startswith("fn="):
            # A suffix such as .isra.0 is added by the compiler; 'n marks recursion.
            function = line[3:].partition(".")[0].partition("'")[0]
        elif line.startswith("calls="):
            callee = True
        elif line[:1].isdigit():
            if ours and not callee and function.startswith("_Z"):
                total[function] += int(line.split()[1])
            callee = False
    return total


def hottest(total: collections.Counter[str], share: float) -> list[str]:
    """The smallest set of functions with this share of all instructions, highest count first."""
    ranked = sorted(total.items(), key=lambda item: (-item[1], item[0]))
    wanted, sum_so_far, names = share * total.total(), 0, []
    for name, count in ranked:
        if sum_so_far >= wanted:
            break
        names.append(name)
        sum_so_far += count
    return names


def work() -> None:
    """The measured program, run in valgrind: first to compile the graphs, then while it counts."""
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
    """Runs the measured program in callgrind."""
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
