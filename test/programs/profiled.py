"""A loop below torch's profiler, which writes a trace of some steps."""

import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.profiler import profile, schedule


def run(device: str, steps: int) -> list[float]:
    torch.manual_seed(0)
    model = nn.Linear(8, 8).to(device)
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        when = schedule(wait=1, warmup=0, active=1, repeat=1)
        handler = lambda profiler: profiler.export_chrome_trace(str(trace))  # noqa: E731
        with profile(schedule=when, on_trace_ready=handler) as profiler:
            for _ in range(max(steps, 3)):
                losses.append(model(torch.randn(4, 8).to(device)).square().sum().item())
                profiler.step()
        assert trace.stat().st_size > 1000
    return losses
