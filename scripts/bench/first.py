"""Measures the first hour: programs as people have them, each in a new process, beside eager.

    python -m scripts.bench.first                      # all, about ten minutes
    python -m scripts.bench.first --only cnn trainer --rounds 1
    python -m scripts.bench.first --threads 0          # as many threads as torch takes by itself

A program of test/programs runs for some steps, with an empty cache of compiled programs and one
thread. The CPU seconds are those of all its threads and workers from the end of the imports to the
end of the process: with the construction of models, all first calls, and compilations. The peak of
memory is that of the process, with its imports.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

from scripts.bench import harness

# Program and steps.
RUNS = [
    *(("cnn", 10), ("cnn", 100), ("custom_op", 100), ("dcgan", 10), ("dcgan", 60), ("dcgan", 200)),
    *(("gaussian_process", 20), ("gaussian_process", 200), ("language", 10), ("language", 100)),
    *(("mixed_precision", 20), ("mixed_precision", 200), ("physics", 5), ("physics", 30)),
    *(("plots", 20), ("profiled", 10), ("prompt", 10), ("reinforce", 5), ("reinforce", 50)),
    *(("resume", 20), ("resume", 200), ("trainer", 10), ("trainer", 40), ("vae", 20), ("vae", 200)),
]

_PROGRAM = """
import runpy, os, resource, sys, warnings
import torch
name, device, steps = sys.argv[1:]
if device == "jax":
    import torch_xla_lite
warnings.simplefilter("ignore")
import torch.utils.data, torch._dynamo  # What optimizers import when they are made.
run = runpy.run_path(f"test/programs/{name}.py")["run"]
if name == "trainer":
    from scripts.bench import models
    models.import_torchvision()
    import transformers
    transformers.Trainer
if name == "plots":
    import matplotlib.pyplot
if name == "prompt":
    import IPython.core.interactiveshell
torch.ones(1).to(device).sum().item()
def seconds():
    of = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in of)
start = seconds()
run(device, int(steps))
print(seconds() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
"""


def main() -> None:
    """Runs the command line."""
    parser = harness.arguments(__doc__)
    names = sorted({name for name, _ in RUNS})
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    report = harness.Report(harness.machine(threads=options.threads or "default"))
    rows, memory = [], []
    for name, steps in RUNS:
        if name not in options.only:
            continue
        found: dict[str, list[tuple[float, ...]]] = {"ours": [], "eager": []}
        for who, device in [("ours", "jax"), ("eager", "cpu")] * options.rounds:
            found[who].append(measured(name, device, steps, options.threads))
        seconds, peaks = ({who: [x[i] for x in found[who]] for who in found} for i in range(2))
        label = f"{name}, {steps} steps"
        rows.append(harness.compare(label, seconds, "CPU s", against="eager", goal=2))
        memory.append(harness.compare(label, peaks, "MB", against="eager", scale=1e-6))
        print(f"{label}: {rows[-1].ratio:.2f}", file=sys.stderr)
    ratios = [row.ratio for row in rows if row.ratio is not None]
    rows.append(harness.Row("median", "", {}, statistics.median(ratios), 1.3))
    report.add("The first process", rows)
    report.add("Its peak of memory", memory)
    report.write(options.json)


def measured(name: str, device: str, steps: int, threads: int) -> tuple[float, ...]:
    """CPU seconds and the peak of bytes of a process that runs a program."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache, "HF_HUB_OFFLINE": "1"}
        if threads:
            environment["OMP_NUM_THREADS"] = str(threads)
        command = [sys.executable, "-c", _PROGRAM, name, device, str(steps)]
        output = subprocess.check_output(command, env=environment, text=True)
    return tuple(map(float, output.split()[-2:]))


if __name__ == "__main__":
    main()
