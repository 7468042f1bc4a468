"""How many graphs programs compile where torch's kernels cannot read the device's memory.

The CPU stands for such a device here: what a program may not interpret is compiled. docs/gpu.md has
the numbers.
"""

from collections.abc import Callable
from functools import partial

import pytest
import torch

from bazel.pytest_plugin import mostly_nightly
from test.models import libraries
from test.programs import (
    cnn,
    dcgan,
    detection,
    evaluation,
    lengths,
    padded,
    rates,
    reinforce,
    resume,
    texts,
    vae,
)
from test.python import tiers
from torch_xla_lite import _XLAC, debug
from torch_xla_lite.lowering.base import target

static = partial(texts.run, cache_implementation="static")
# Program -> its steps, and how many graphs it may compile.
PROGRAMS: dict[str, tuple[Callable, int, int]] = {
    "transformers": (static, 64, 5),
    "transformers, sampling": (partial(static, do_sample=True), 64, 5),
    "transformers, streaming": (partial(static, streams=True), 64, 5),
    "transformers, beams": (partial(static, num_beams=3), 24, 5),
    "transformers, growing cache": (texts.run, 24, 24),
    "transformers, lookup": (partial(texts.run, prompt_lookup_num_tokens=3), 24, 13),
    "evaluation": (evaluation.run, 3, 5),
    "reinforce": (reinforce.run, 12, 0),
    "lengths": (lengths.run, 62, 62),
    "resume": (resume.run, 12, 0),
    "padded": (padded.run, 24, 6),
    "rates": (rates.run, 40, 2),
    "detection": (detection.run, 12, 11),
    "randperm": (lambda on, n: [torch.randperm(i, device=on).sum().item() for i in range(n)], 9, 0),
    "cnn": (cnn.run, 6, 0),
    "dcgan": (dcgan.run, 4, 2),
    "vae": (vae.run, 6, 2),
}


@pytest.fixture(autouse=True)
def _no_kernel_reads_the_device(monkeypatch):
    monkeypatch.setattr(target, "has_host_memory", lambda: False)
    with tiers.as_by_default():
        yield
    _XLAC.clear_cache()


@pytest.mark.parametrize(
    "program", mostly_nightly(PROGRAMS, ["randperm", "rates", "reinforce", "resume"])
)
def test_programs_compile_few_graphs(program: str):
    if "transformers" in program:
        libraries.require("transformers")
    run, steps, most = PROGRAMS[program]
    expected = run("cpu", steps)
    debug.reset_metrics()
    results = run("jax", steps)
    # Each device draws numbers of its own.
    if "sampling" not in program:
        assert results == pytest.approx(expected, rel=5e-3, abs=1e-3)
    assert debug.metrics()["compiles"] <= most
