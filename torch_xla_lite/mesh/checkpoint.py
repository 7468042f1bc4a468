"""Saves a model and its optimizer by orbax, and restores them to any other mesh.

    torch_xla_lite.save_checkpoint("run/5", model, optimizer, step=5)
    step = torch_xla_lite.load_checkpoint("run/5", model, optimizer)

Each process writes its own parts, and reads the parts that it needs: the number of processes and
the mesh may be others when a checkpoint is restored, or there may be one device. With several
processes all call these functions, with a path that all of them see.

A checkpoint is a folder of orbax: `arrays`, which jax can read without this package, and `facts`,
a JSON file with all that is no tensor.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from torch_xla_lite.startup.late_jax import jax

from .. import _XLAC
from ..device import NAME
from ..lowering.base import decomposition, registry
from . import sharding
from .base import placements

# A name in a tree of arrays -> where a tensor is, its shape, its dtype.
_Facts = dict[str, Any]


def save_checkpoint(
    path: str | Path,
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer | None = None,
    *,
    step: int | None = None,
    overwrite: bool = False,
) -> None:
    """Saves parameters and buffers, the states of an optimizer, the random numbers of the device,
    and the number of a step.

    Args:
      path: a folder, which appears when all is written.
      overwrite: whether a folder that exists is replaced.

    Raises:
      ImportError: orbax is not installed.
      FileExistsError: the folder exists, and `overwrite` is false.
      TypeError: a state of the optimizer is neither a tensor nor JSON.
    """
    ocp = _orbax()
    path = Path(path).absolute()
    if path.exists() and not overwrite:
        raise FileExistsError(f"{path} exists.\nReplace it:  save_checkpoint(..., overwrite=True)")
    tensors = _tensors_of(model)
    facts: _Facts = {"step": step, "generator": list(_XLAC.get_rng_state())}
    if optimizer is not None:
        states = optimizer.state_dict()
        facts["param_groups"] = states["param_groups"]
        facts["states"], of_states = _divided(states["state"])
        tensors |= of_states
    facts["tensors"] = {name: _facts_of(tensor) for name, tensor in tensors.items()}
    arrays = {name: _array_of(tensor) for name, tensor in tensors.items()}
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        items = {"arrays": ocp.args.StandardSave(arrays), "facts": ocp.args.JsonSave(facts)}
        checkpointer.save(path, ocp.args.Composite(**items), force=overwrite)


def load_checkpoint(
    path: str | Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer | None = None
) -> int | None:
    """Restores what `save_checkpoint` has saved, into tensors where they are: those of the model
    keep their places, and states get those of their parameters.

    Returns:
      The number of the step.

    Raises:
      ImportError: orbax is not installed.
      FileNotFoundError: there is no checkpoint.
      ValueError: the model or the optimizer does not fit the checkpoint; nothing is changed.
    """
    ocp = _orbax()
    path = Path(path).absolute()
    if not path.is_dir():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    with ocp.Checkpointer(ocp.CompositeCheckpointHandler()) as checkpointer:
        of_facts = ocp.args.Composite(facts=ocp.args.JsonRestore())
        facts = checkpointer.restore(path, of_facts)["facts"]
        saved = facts["tensors"]
        targets = _tensors_of(model)
        _check_fits(targets, saved)
        if optimizer is not None:
            _check_groups(optimizer, facts)
        wanted = {name: _wanted(saved[name], tensor) for name, tensor in targets.items()}
        if optimizer is not None:
            parameters = [p for group in optimizer.param_groups for p in group["params"]]
            for name in saved:
                if name.startswith(_STATE):
                    wanted[name] = _wanted(saved[name], parameters[_number(name)])
        of_arrays = ocp.args.StandardRestore(wanted, strict=False)
        arrays = checkpointer.restore(path, ocp.args.Composite(arrays=of_arrays))["arrays"]
    restored = {name: _tensor_of(arrays[name], saved[name]) for name in wanted}
    with torch.no_grad():
        for name, tensor in targets.items():
            tensor.copy_(restored[name])
    if optimizer is not None:
        states = _joined(facts["states"], restored)
        optimizer.load_state_dict({"state": states, "param_groups": facts["param_groups"]})
    _XLAC.set_rng_state(*facts["generator"])
    return facts["step"]


def full_state_dict(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """`module.state_dict()` as whole tensors on the CPU. All processes call it; the first one gets
    the tensors, and the others an empty dictionary.

    Example:
      >>> state = torch_xla_lite.full_state_dict(model)
      >>> if jax.process_index() == 0:
      ...     torch.save(state, "model.pt")
    """
    state = {}
    for name, tensor in module.state_dict().items():
        whole = sharding.replicate(tensor) if _is_divided(tensor) else tensor
        if jax.process_index() == 0:
            state[name] = whole.cpu()
    return state


def _orbax() -> Any:
    try:
        import orbax.checkpoint
    except ImportError as error:
        raise ImportError(
            "checkpoints need orbax.\nInstall it:  pip install orbax-checkpoint"
        ) from error
    return orbax.checkpoint


def _is_divided(tensor: torch.Tensor) -> bool:
    return tensor.device.type == NAME and not _XLAC.to_jax(tensor.detach()).is_fully_replicated


# --- tensors and arrays ---------------------------------------------------------------------------


def _tensors_of(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    # Those of a model that are shared have one name, and what is no part of its state has none.
    kept = model.state_dict().keys()
    return {f"model/{name}": tensor for name, tensor in named.items() if name in kept}


def _facts_of(tensor: torch.Tensor) -> _Facts:
    device = NAME if tensor.device.type == NAME else "cpu"
    dtype = str(tensor.dtype).removeprefix("torch.")
    return {"device": device, "shape": list(tensor.shape), "dtype": dtype}


def _array_of(tensor: torch.Tensor) -> Any:
    if tensor.device.type != NAME:
        return decomposition.as_numpy(tensor)
    array = _XLAC.to_jax(tensor.detach())
    if jax.process_count() > 1 and array.is_fully_addressable:
        return placements.place(array, sharding.number_of_spec((), array.ndim))
    return array


def _wanted(saved: _Facts, like: torch.Tensor) -> Any:
    """What orbax is to restore: an array where a tensor like it is."""
    shape, dtype = tuple(saved["shape"]), registry.OF_TORCH[getattr(torch, saved["dtype"])]
    if saved["device"] != NAME or like.device.type != NAME:
        return np.empty(shape, dtype)
    place = _XLAC.to_jax(like.detach()).sharding
    if shape != tuple(like.shape) and isinstance(place, jax.sharding.NamedSharding):
        place = jax.sharding.NamedSharding(place.mesh, jax.sharding.PartitionSpec())
    return jax.ShapeDtypeStruct(shape, dtype, sharding=place)


def _tensor_of(array: Any, saved: _Facts) -> torch.Tensor:
    from ..device.tensor import XLATensor2

    with jax.enable_x64(True):
        tensor = XLATensor2(array if isinstance(array, jax.Array) else jax.device_put(array))
    return tensor if saved["device"] == NAME else tensor.cpu()


# --- the states of an optimizer -------------------------------------------------------------------

_STATE = "optimizer/"


def _divided(states: dict[int, dict[str, Any]]) -> tuple[_Facts, dict[str, torch.Tensor]]:
    """The states that are no tensors, and the tensors by their names in the checkpoint."""
    others: _Facts = {}
    tensors = {}
    for number, state in states.items():
        for name, value in state.items():
            if isinstance(value, torch.Tensor):
                tensors[f"{_STATE}{number}/{name}"] = value
            elif value is None or isinstance(value, (bool, int, float, str)):
                others.setdefault(str(number), {})[name] = value
            else:
                raise TypeError(
                    f"state {name!r} of parameter {number} is {type(value).__name__}, and neither "
                    "a tensor nor a number.\nSave it in a file of its own:  torch.save"
                )
    return others, tensors


def _joined(others: _Facts, restored: dict[str, torch.Tensor]) -> dict[int, dict[str, Any]]:
    states: dict[int, dict[str, Any]] = {int(number): dict(o) for number, o in others.items()}
    for name, tensor in restored.items():
        if name.startswith(_STATE):
            states.setdefault(_number(name), {})[name.rpartition("/")[2]] = tensor
    return states


def _number(name: str) -> int:
    return int(name.split("/")[1])


# --- what fits ------------------------------------------------------------------------------------


def _check_fits(targets: dict[str, torch.Tensor], saved: _Facts) -> None:
    names = {name for name in saved if not name.startswith(_STATE)}
    problems = [f"it lacks {name.partition('/')[2]}" for name in sorted(targets.keys() - names)]
    problems += [f"it also has {name.partition('/')[2]}" for name in sorted(names - targets.keys())]
    for name in sorted(names & targets.keys()):
        own, was = _facts_of(targets[name]), saved[name]
        if (own["shape"], own["dtype"]) != (was["shape"], was["dtype"]):
            problems.append(
                f"{name.partition('/')[2]} is {was['dtype']}{was['shape']} in it, and "
                f"{own['dtype']}{own['shape']} in the model"
            )
    if problems:
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        raise ValueError(
            f"the checkpoint is of another model: {'; '.join(problems[:3])}{more}.\n"
            "Build the model that was saved"
        )


def _check_groups(optimizer: torch.optim.Optimizer, facts: _Facts) -> None:
    sizes = [len(group["params"]) for group in optimizer.param_groups]
    saved = [len(group["params"]) for group in facts.get("param_groups", ())]
    if sizes != saved:
        raise ValueError(
            f"the optimizer has groups of {sizes} parameters, and the checkpoint {saved or 'none'}"
            ".\nBuild the optimizer that was saved, or leave it out"
        )
