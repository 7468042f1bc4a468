"""Spreads tensors over the devices of a mesh; XLA's partitioner does the rest.

    torch_xla_lite.set_mesh(jax.make_mesh((2, 4), ("data", "model")), batch="data")
    torch_xla_lite.shard_module(model, [(r"up\\.weight", ("model", None))], fsdp="data")
    loss = model(images.to("jax")).mean()      # the loop is unchanged

A tensor keeps its shape and its values; where its data is, is a matter of speed and memory alone.
What is computed from it is placed by XLA, and what is written to it stays where it was: parameters,
their gradients and the states of their optimizer.

A *spec* says for each dimension along which axis of the mesh it is divided: a name, several names,
or None. Dimensions at the end may be left out, so `()` means that each device has all of the data;
`shard(x, "data", ...)` leaves them to XLA.
"""

from __future__ import annotations

import contextlib
import functools
import math
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.weak import WeakTensorKeyDictionary

from torch_xla_lite.startup.late_jax import jax

from .. import _XLAC
from ..device import NAME
from ..startup import patches
from ..startup.patches import Patch
from .base import placements
from .base.placements import Spec

if TYPE_CHECKING:
    from jax.sharding import Mesh

# (a pattern that is searched in the names of parameters and buffers, their spec)
Rule = tuple[str, Sequence[Any]]


def set_mesh(mesh: Any, *, batch: str | Sequence[str] | None = None) -> None:
    """Sets the devices that this process computes with, and names them by axes.

    Args:
      mesh: a `jax.sharding.Mesh`, such as `jax.make_mesh((2, 4), ("data", "model"))`; a
        `torch.distributed.DeviceMesh`, whose ranks are jax's devices in their order, or the
        processes, if each has one device; or None for one device.
      batch: the axis that batches are spread along. Tensors that are copied to the device get
        their first dimension divided by it, if it can be; others, modules and optimizer states stay
        whole. With several processes, all copy the same tensor.

    Raises:
      ValueError: the mesh has no such axis.

    Example:
      >>> torch_xla_lite.set_mesh(jax.make_mesh((8,), ("data",)), batch="data")
    """
    global _batch_axes
    if mesh is None:
        _batch_axes = ()
        placements.set_mesh(None)
        _XLAC.set_placement_of_uploads(None)
        return
    if hasattr(mesh, "mesh_dim_names"):
        mesh = _from_torch(mesh)
    if not isinstance(mesh, jax.sharding.Mesh):
        raise TypeError(
            f"expected a jax.sharding.Mesh or a torch DeviceMesh, got {type(mesh).__name__}.\n"
            'Make one:  jax.make_mesh((len(jax.devices()),), ("data",))'
        )
    axes = _names(batch)
    _check_axes(axes, mesh)
    placements.set_mesh(mesh)
    _batch_axes = tuple(axes)
    _follow_parameters()
    _XLAC.set_placement_of_uploads(functools.partial(_placement_of_batch, axes) if axes else None)


def shard(tensor: torch.Tensor, *spec: Any) -> torch.Tensor:
    """The same values, divided among the devices of the mesh.

    Of a tensor that is recorded, or that has a gradient, it is a constraint on the program:
    differentiable, and the gradient is divided in the same way.

    Args:
      tensor: on any device; the result is on `'jax'`.
      spec: see the module.

    Raises:
      ValueError: there is no such axis, or it does not divide the dimension.
      RuntimeError: no mesh is set.

    Example:
      >>> h = torch_xla_lite.shard(h, "data", None, "model")
    """
    is_open = spec[-1:] == (...,)
    spec = spec[:-1] if is_open else spec
    check_spec(tensor.shape, spec)
    if tensor.device.type != NAME:
        with whole_uploads():
            tensor = tensor.to(NAME)
    if tensor.requires_grad or _XLAC.is_pending(tensor):
        text = placements.constraint((*spec, "...") if is_open else spec)
        return torch.ops.torch_xla_lite.constrain(tensor, text)
    number = number_of_spec(spec, tensor.dim())
    return _XLAC.from_jax(placements.place(_XLAC.to_jax(tensor), number), number)


def replicate(tensor: torch.Tensor) -> torch.Tensor:
    """The same values on each device of the mesh, in full."""
    return shard(tensor)


def shard_(tensor: torch.Tensor, *spec: Any) -> torch.Tensor:
    """Moves the data of a tensor on `'jax'`, and of all its views, to where the spec says. What is
    written to it later stays there. It cannot be a view of another tensor."""
    check_spec(tensor.shape, spec)
    _XLAC.place(tensor.detach(), number_of_spec(spec, tensor.dim()))
    return tensor


def shard_module(
    module: torch.nn.Module, rules: Sequence[Rule] = (), *, fsdp: str | None = None
) -> torch.nn.Module:
    """Places the parameters and buffers of a module on the mesh, and moves it there.

    Args:
      module: on any device. Its parameters stay the same objects, so an optimizer may have them.
        With several processes all get the values of process 0, and its random numbers.
      rules: (pattern, spec), of which the first whose pattern is found in the name of a parameter
        or buffer says where that is. A parameter without a rule is replicated.
      fsdp: an axis along which each parameter is divided, too: its largest dimension that no rule
        divides and that the axis divides. Gradients and states follow their parameters. What
        modules with parameters return is divided as the batch is, which is the first dimension.

    Returns:
      The module.

    Raises:
      ValueError: a rule names an axis that the mesh has not, or that does not divide the dimension.

    Example, tensor parallelism of a feed-forward layer:
      >>> rules = [(r"up\\.weight", ("model", None)), (r"down\\.weight", (None, "model"))]
      >>> torch_xla_lite.shard_module(model, rules, fsdp="data")
    """
    if fsdp is not None:
        _check_axes([fsdp], placements.mesh())
    # Moved first, and whole: a weight is no batch.
    module.to(NAME)
    tensors = [*module.named_parameters(), *module.named_buffers()]
    if jax.process_count() > 1:
        _take_values_of_first_process([tensor for _, tensor in tensors])
    _warn_of_unused(rules, [name for name, _ in tensors])
    for name, tensor in tensors:
        shard_(tensor, *spec_in_module(name, tensor, rules, fsdp=fsdp))
        if tensor.requires_grad and tensor.is_leaf:
            pin_gradient(tensor)
    if fsdp is not None:
        keep_batch(module, fsdp)
    return module


def _warn_of_unused(rules: Sequence[Rule], names: Sequence[str]) -> None:
    for pattern, _ in rules:
        if not any(re.search(pattern, name) for name in names):
            warnings.warn(
                f"the rule {pattern!r} divides nothing: it is found in no name of a parameter or "
                f"buffer, which are {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}",
                stacklevel=3,
            )


def spec_in_module(
    name: str, tensor: torch.Tensor, rules: Sequence[Rule], *, fsdp: str | None
) -> Spec:
    """How `shard_module` divides a parameter or buffer of this name.

    Raises:
      ValueError: a rule names an axis that the mesh has not, or that does not divide the dimension.
    """
    spec: Spec = next((tuple(spec) for rule, spec in rules if re.search(rule, name)), ())
    try:
        check_spec(tensor.shape, spec)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    is_divided = fsdp is not None and isinstance(tensor, torch.nn.Parameter)
    return _with_axis(tensor.shape, spec, fsdp) if is_divided else spec


def fully_shard(module: torch.nn.Module, *, axis: str | None = None) -> torch.nn.Module:
    """`shard_module` with each parameter divided along an axis, by default the first of the
    mesh: of FSDP's memory, parameters, gradients and states take 1 / n on each device."""
    return shard_module(module, fsdp=axis or placements.mesh().axis_names[0])


# The axes that batches are divided along.
_batch_axes: tuple[str, ...] = ()


def batch_axes() -> tuple[str, ...]:
    """The axes that batches are divided along: those that `set_mesh` was told, or all."""
    return _batch_axes or tuple(placements.mesh().axis_names)


class _BatchKeeper:
    """Lets activations stay divided as the batch is, where their weights are divided along the same
    axis. XLA, which sees an array of weights and one of activations, would often move the latter:
    a Llama of 1.24 billion parameters on 512 devices sent 200 times as much.

    Hooks are methods, because a module with hooks that are closures cannot be pickled.
    """

    def __init__(self, axes: Sequence[str]) -> None:
        self._axes = tuple(axes)
        self._size = 0  # Of the batch that the module is called with; 0 if it is not divided.

    def watch(self, module: torch.nn.Module) -> None:
        """Registers the hooks for a module and all that is in it."""
        module.register_forward_pre_hook(self.note, with_kwargs=True)
        for part in module.modules():
            hooks = part._forward_hooks.values()
            is_watched = any(isinstance(getattr(x, "__self__", None), _BatchKeeper) for x in hooks)
            if not is_watched and next(part.parameters(recurse=False), None) is not None:
                part.register_forward_hook(self.keep)

    def note(self, _: torch.nn.Module, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        given = [x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor) and x.dim()]
        size = given[0].shape[0] if given and placements.has_axes(self._axes) else 0
        self._size = size if size and _can_divide(size, self._axes) else 0

    def keep(self, _: torch.nn.Module, __: Any, output: Any) -> Any:
        if not isinstance(output, torch.Tensor) or output.dim() == 0 or output.device.type != NAME:
            return output
        is_batch = output.shape[0] == self._size > 0
        return shard(output, self._axes, ...) if is_batch else output


def keep_batch(module: torch.nn.Module, fsdp: str) -> None:
    """See `_BatchKeeper`; `shard_module` calls it."""
    _BatchKeeper(_batch_axes if fsdp in _batch_axes else [fsdp]).watch(module)


def shard_output(module: torch.nn.Module, *spec: Any) -> torch.nn.Module:
    """Divides what a module returns, the first tensor of it, each time that it is called: where
    XLA would choose a placement of activations that communicates too much.

    Example:
      >>> for block in model.blocks:
      ...     torch_xla_lite.shard_output(block, "data")
    """

    def constrain(_: torch.nn.Module, __: Any, output: Any) -> Any:
        if isinstance(output, torch.Tensor):
            return shard(output, *spec)
        return type(output)([shard(output[0], *spec), *output[1:]])

    module.register_forward_hook(constrain)
    return module


def spec_of(tensor: torch.Tensor) -> str:
    """Where the data of a tensor is: "P('data')", "on each device", "on one device"; and if it is
    not computed yet, where it will be, or "not decided"."""
    number = _XLAC.placement_of(tensor)
    return "not decided" if number is None else placements.spec_text(number)


# --- specs ----------------------------------------------------------------------------------------


def _names(axes: str | Sequence[str] | None) -> list[str]:
    return [*axes] if isinstance(axes, list | tuple) else [] if axes is None else [axes]


def _check_axes(names: Sequence[str], mesh: Mesh) -> None:
    for name in names:
        if name not in mesh.shape:
            raise ValueError(f"the mesh has the axes {tuple(mesh.shape)}, and no {name!r}")


def _can_divide(size: int, axes: Sequence[str]) -> bool:
    mesh = placements.mesh()
    return size % math.prod(mesh.shape[name] for name in axes) == 0


def check_spec(shape: Sequence[int], spec: Sequence[Any]) -> None:
    """Raises ValueError if a tensor of this shape cannot be divided so."""
    mesh = placements.mesh()
    if len(spec) > len(shape):
        raise ValueError(f"a spec of {len(spec)} dimensions for a tensor of {len(shape)}: {spec}")
    all_names: list[str] = []
    for dim, axes in enumerate(spec):
        names = _names(axes)
        _check_axes(names, mesh)
        all_names += names
        if len({*all_names}) < len(all_names):
            raise ValueError(f"an axis of the mesh divides one dimension at most: {spec}")
        parts = math.prod(mesh.shape[name] for name in names)
        if shape[dim] % parts:
            raise ValueError(
                f"dimension {dim} has {shape[dim]} elements, which {parts} devices along {axes!r} "
                "cannot share evenly.\n"
                "Pad it; drop the last batch:  DataLoader(..., drop_last=True); or let each device "
                "have all of it:  torch_xla_lite.replicate(x)"
            )


def number_of_spec(spec: Sequence[Any], ndim: int) -> int:
    entries = [tuple(axes) if isinstance(axes, list) else axes for axes in spec]
    return placements.number_of(
        jax.sharding.NamedSharding(placements.mesh(), jax.sharding.PartitionSpec(*entries)), ndim
    )


def _with_axis(shape: Sequence[int], spec: Spec, axis: str) -> Spec:
    """A spec that also divides the largest dimension that is free and that the axis divides."""
    if axis in [name for axes in spec for name in _names(axes)]:
        return spec
    size = placements.mesh().shape[axis]
    entries = [*spec, *(None,) * (len(shape) - len(spec))]
    free = [d for d, n in enumerate(shape) if entries[d] is None and n and n % size == 0]
    if free:
        entries[max(free, key=lambda d: shape[d])] = axis
    return tuple(entries)


def _take_values_of_first_process(tensors: Sequence[torch.Tensor]) -> None:
    """Also the random numbers that come next: devices have parts of one mask."""
    from jax.experimental import multihost_utils

    state = multihost_utils.broadcast_one_to_all(torch.jax.get_rng_state().numpy())
    torch.jax.set_rng_state(torch.from_numpy(np.array(state)))

    with jax.enable_x64(True), torch.no_grad():
        arrays = [_XLAC.to_jax(tensor.detach()) for tensor in tensors]
        for tensor, array in zip(
            tensors, multihost_utils.broadcast_one_to_all(arrays), strict=True
        ):
            tensor.copy_(_XLAC.from_jax(jax.device_put(np.asarray(array))))


# --- what comes from the host ---------------------------------------------------------------------


def _placement_of_batch(axes: Sequence[str], dims: Sequence[int]) -> int:
    """Where a tensor goes that the program copies to the device."""
    if not _spreads_uploads or not dims or dims[0] == 0:
        return placements.ONE_DEVICE
    try:
        check_spec(dims, [axes])
    except ValueError as error:
        if len(dims) > 1:  # A vector is often something else than a batch.
            warnings.warn(f"no device shares the work of a batch: {error}", stacklevel=2)
        return placements.ONE_DEVICE
    return number_of_spec([tuple(axes)], len(dims))


_spreads_uploads = True


@contextlib.contextmanager
def whole_uploads() -> Iterator[None]:
    """In the body, what is copied to the device is not spread as a batch."""
    global _spreads_uploads
    before, _spreads_uploads = _spreads_uploads, False
    try:
        yield
    finally:
        _spreads_uploads = before


def _from_torch(mesh: torch.distributed.DeviceMesh) -> Mesh:
    """The mesh of jax's devices that have the ranks of a torch mesh: with several processes, of
    which each is a rank, their devices."""
    devices = sorted(jax.devices(), key=lambda device: (device.process_index, device.id))
    if jax.process_count() not in (1, len(devices)):
        raise ValueError(
            f"a rank of torch's mesh is a process, and {jax.process_count()} processes have "
            f"{len(devices)} devices.\n"
            'Name them by jax:  jax.make_mesh((len(jax.devices()),), ("data",))'
        )
    ranks = mesh.mesh.numpy()
    if ranks.max() >= len(devices):
        raise ValueError(
            f"the mesh has device {ranks.max()}, and jax has {len(devices)} devices.\n"
            "For tests, give a CPU more:  export XLA_FLAGS=--xla_force_host_platform_device_count=8"
        )
    names = mesh.mesh_dim_names or tuple(f"dim{i}" for i in range(ranks.ndim))
    return jax.sharding.Mesh(np.array(devices)[ranks], names)


# --- what follows parameters ----------------------------------------------------------------------

_gradient_hooks = WeakTensorKeyDictionary()


def pin_gradient(parameter: torch.Tensor) -> None:
    """Lets each gradient of a parameter be where the parameter is."""

    def keep(parameter: torch.Tensor) -> None:
        if parameter.grad is not None and parameter.grad.device.type == NAME:
            _XLAC.keep_at(parameter.grad, _XLAC.placement_of(parameter))

    if parameter not in _gradient_hooks:
        _gradient_hooks[parameter] = parameter.register_post_accumulate_grad_hook(keep)


def _moving_whole(apply: Callable[..., torch.nn.Module]) -> Callable[..., torch.nn.Module]:
    @functools.wraps(apply)
    def apply_whole(self: torch.nn.Module, *args: Any, **kwargs: Any) -> torch.nn.Module:
        with whole_uploads():
            return apply(self, *args, **kwargs)

    return apply_whole


def _loading_in_place(convert: Callable[..., torch.Tensor]) -> Any:
    @functools.wraps(convert)
    def convert_in_place(param: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        with whole_uploads():
            value = convert(param, *args, **kwargs)
        if value.device.type == NAME and param.device.type == NAME and value.shape == param.shape:
            number = _XLAC.placement_of(param)
            if number and number != _XLAC.placement_of(value):
                _XLAC.place(value, number)
        return value

    return staticmethod(convert_in_place)


_PATCHES = (
    Patch("torch.nn.modules.module", "Module._apply", "divides weights as a batch", _moving_whole),
    Patch(
        "torch.optim.optimizer",
        "Optimizer._process_value_according_to_param_policy",
        "loads states to one device",
        _loading_in_place,
    ),
)
_follow_parameters = functools.cache(lambda: patches.apply(_PATCHES))
