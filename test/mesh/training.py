"""A program of several processes: trains the language model, and fails if it is told to.

    python -m torch_xla_lite.launch -n 2 training.py MODE [FAILURE PROCESS STEP]

Prints the losses, and the counts of the runtime. Each process has 8 / n devices.
"""

import atexit
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import jax
import torch

import torch_xla_lite as txl

# This is a script, also where Python does not add its folder.
sys.path.insert(0, os.path.dirname(__file__))
from transformer import RULES, VOCABULARY, LanguageModel

STEPS, BATCH, LENGTH = 3, 16, 32


def _exit() -> None:
    sys.exit(3)


def _raise() -> None:
    raise KeyError("lost")


def _end_early() -> None:
    sys.exit(0)


def _hang() -> None:
    time.sleep(1_000)


def _kill(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


FAILURES = {
    "raise": _raise,
    "exit": _exit,
    "end": _end_early,
    "hang": _hang,
    "SIGKILL": _kill(signal.SIGKILL),
    "SIGTERM": _kill(signal.SIGTERM),
}


def main(mode: str, failure: str = "", process: str = "0", at_step: str = "0") -> None:
    count = os.environ.get("WORLD_SIZE") or os.environ["SLURM_NTASKS"]
    jax.config.update("jax_num_cpu_devices", 8 // int(count))
    atexit.register(lambda: print("threads at the end:", threading.active_count()))
    txl.distributed.initialize()
    if failure == "hang":
        txl.distributed._PATIENCE = 5
    grid = mode == "tp+fsdp"
    shape, axes = ((2, 4), ("data", "model")) if grid else ((8,), ("data",))
    txl.set_mesh(jax.make_mesh(shape, axes))
    torch.manual_seed(jax.process_index())  # Those of process 0 count.
    model = LanguageModel(blocks=1)
    txl.shard_module(model, RULES if grid else (), fsdp="data" if mode != "dp" else None)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if path := os.environ.get("LOAD"):
        txl.load_checkpoint(path, model, optimizer)
    if failure == "known":
        for scale in (1.0, 2.0):
            (txl.shard(torch.ones(8), "data") * scale).sum().item()
            (txl.shard(torch.ones(8), "data") + scale).sum().item()
    if failure == "rate" and jax.process_index() == int(process):
        optimizer.param_groups[0]["lr"] = 1e-4
    draw = torch.Generator().manual_seed(1)
    losses = []
    for step in range(STEPS):
        here = failure and jax.process_index() == int(process) and step == int(at_step)
        if here and failure in FAILURES:
            print("FAILS AT", time.time(), flush=True)
            FAILURES[failure]()
        optimizer.zero_grad()
        tokens = torch.randint(VOCABULARY, (BATCH, LENGTH + 1), generator=draw)
        mine = tokens.chunk(jax.process_count())[jax.process_index()]
        if here and failure == "batch":
            mine = mine[:4]
        if failure == "uneven":
            mine = mine[:6]
        ((x, y),) = txl.shard_loader([(mine[:, :-1], mine[:, 1:])], "data")
        scores = model(x)
        if here and failure == "program":
            scores = scores * 2
        if here and failure == "data":
            scores = scores + torch.full((VOCABULARY,), 1.0).to("jax")
        elif failure == "data":
            scores = scores + torch.full((VOCABULARY,), 2.0).to("jax")
        if failure == "known":
            ones = txl.shard(torch.ones(8), "data")
            (ones + 2.0 if here else ones * 2.0).sum().item()
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if path := os.environ.get("SAVE"):
        txl.save_checkpoint(path, model, optimizer)
    weight = txl.replicate(model.head.weight.detach()).cpu()
    if jax.process_index() == 0:
        print(model.head.weight)  # Needs no other process.
    print("RESULT", json.dumps([losses, weight.abs().sum().item(), txl.debug.metrics()]))


if __name__ == "__main__":
    main(*sys.argv[1:])
