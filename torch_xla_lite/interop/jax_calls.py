"""call_jax: calls a jax function with tensors, as one recorded op.

    y = call_jax(jnp.sin, x)
    y = call_jax(loss, {"w": w, "b": b}, x, scale=2.0)    # tensors in pytrees; the rest is static

The function is traced once for each signature (jax_programs.py). The op names the program by its
number; its lowering puts the program into the graph, so that XLA fuses it with its neighbours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.autograd import forward_ad

from torch_xla_lite.startup.late_jax import jax, jnp, lax

from .. import _XLAC
from ..compiler import jax_programs
from ..compiler.jax_programs import OP, Program, Trace
from ..device.tensor import XLATensor2, reading_refused
from ..lowering.base import decomposition, host, registry
from ..torch_hooks import meta_functions
from . import captured_tensors, jax_functions, thread_settings

# The dtypes that switch 64 bits on.
_WIDE = frozenset({torch.float64, torch.complex128})


@meta_functions.hidden_from_dynamo
def call_jax(fn: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """Calls a jax function with tensors.

        call_jax(jnp.fft.fft, x)
        call_jax(model.apply, params, x, rngs=jax.random.key(0))
        call_jax(functools.partial(smooth, width=3), x)

    On device jax the call is recorded, as one op, and becomes part of the graph of its neighbours.
    With CPU tensors alone it runs at once, compiled by jax for the CPU. Gradients are those of jax,
    also gradients of gradients; `torch.func`, `torch.vmap`, `torch.export`, `torch.compile` work.

    The function is traced once for each signature: structure of the arguments, shapes and dtypes of
    the arrays, values of everything else. It must be pure: Python code in it does not run again.
    An array that it captures is a constant of the call, and a tensor that it captures is refused.

    Args:
      fn: takes and gives pytrees of arrays. Inside, jax has the user's settings: without
        `jax_enable_x64`, integers are int32. Tensors that are float64 or complex128 switch 64 bits
        on for the call.
      args, kwargs: pytrees of jax. Tensors, jax.Arrays and numpy.ndarrays are arrays in `fn`; any
        other leaf is passed as it is, must be hashable, and each new value traces again. Random
        keys may be typed or not.

    Returns:
      The results of `fn`, with tensors in place of arrays. Random keys come as their data.

    Raises:
      TypeError: an argument is a tracer of jax or cannot be hashed; the message names it.
      RuntimeError: some tensors are on jax and others on the CPU.

    Warns:
      RecompilationWarning: a line of the program calls ever new functions.
    """
    if isinstance(fn, functools.partial):
        fn, args, kwargs = jax_functions.unwrapped(fn, args, kwargs)
    leaves, tree = jax.tree.flatten((args, kwargs))
    signature: list[Hashable] = [tree, jax.enable_x64.value, thread_settings.key()]
    if (modes := getattr(fn, "_torch_modes", None)) is not None:  # of to_jax
        signature.append(modes())
    operands: list[torch.Tensor] = []
    arrays: list[int] = []  # which operands are no tensors
    for leaf in leaves:
        if isinstance(leaf, torch.Tensor):
            operands.append(leaf)
            signature.append((leaf.shape, leaf.dtype))
        elif isinstance(leaf, (jax.Array, np.ndarray)):
            arrays.append(len(operands))
            operands.append(_tensor_of(leaf))
            kind = np.ndarray if isinstance(leaf, np.ndarray) else _impl_of(leaf)
            signature.append((operands[-1].shape, operands[-1].dtype, kind))
        else:
            signature.append(jax_functions.key_of(leaf))
    traces = jax_functions.traces_of(fn)
    key = tuple(signature)
    try:
        traced = traces.get(key)
    except TypeError:
        raise _not_hashable(fn, leaves) from None
    if traced is None:
        traced = _trace(fn, leaves, tree, operands)
        if not traces:
            jax_functions.note_first_trace(fn)
        jax_programs.keep(traced, traces, key)
    else:
        jax_programs.note_use(traced.program)
    if arrays or traced.captured:
        _add_arrays(operands, arrays, traced.captured)
    return jax.tree.unflatten(traced.tree, _apply(traced.program, operands))


def _trace(fn: Callable, leaves: list[Any], tree: Any, operands: list[torch.Tensor]) -> Trace:
    """Traces a call. The leaves tell which of them are operands, and which random keys."""
    given = zip(filter(_is_array, leaves), operands, strict=True)
    # numpy's floats are float64 unless one says otherwise: they are float32 in jax.
    is_wide = any(x.dtype in _WIDE and not isinstance(leaf, np.ndarray) for leaf, x in given)
    x64 = jax.enable_x64.value or is_wide
    structs = [_struct(operand, x64) for operand in operands]

    def function(*arrays: jax.Array) -> Any:
        values = iter(arrays)
        given = [
            jax_programs.wrapped(next(values), _impl_of(leaf)) if _is_array(leaf) else leaf
            for leaf in leaves
        ]
        args, kwargs = jax.tree.unflatten(tree, given)
        return fn(*args, **kwargs)

    label = jax_functions.name_of(fn)
    with reading_refused(
        f"{label} captures a tensor on jax, which would be a constant without a gradient.\n"
        "Pass it as an argument:  call_jax(fn, x, tensor)"
    ):
        program, captured, structure = jax_programs.trace(function, structs, label, x64)
    tensors = tuple(map(XLATensor2, captured))
    for tensor in tensors:
        captured_tensors.note_constant(tensor)
    return Trace(program, tensors, structure)


def _add_arrays(
    operands: list[torch.Tensor], arrays: list[int], captured: tuple[torch.Tensor, ...]
) -> None:
    """Adds the arrays that a function captures. Moves them, and operands that were arrays, to the
    device of the tensors."""
    tensors = [x for i, x in enumerate(operands) if i not in arrays]
    arrays += range(len(operands), len(operands) + len(captured))
    operands += captured
    if tensors and all(x.is_cpu for x in tensors):
        for i in arrays:
            operands[i] = operands[i].cpu()


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (torch.Tensor, jax.Array, np.ndarray))


def _impl_of(leaf: Any) -> Any:
    return jax_programs.impl_of(leaf) if isinstance(leaf, jax.Array) else None


def _struct(operand: torch.Tensor, x64: bool) -> jax.ShapeDtypeStruct:
    dtype = registry.OF_TORCH.get(operand.dtype)
    if dtype is None:
        raise TypeError(
            f"jax has no dtype {operand.dtype} (in call_jax).\nConvert the tensor first:  x.float()"
        )
    with jax.enable_x64(x64):
        return jax.ShapeDtypeStruct(tuple(operand.shape), jax.dtypes.canonicalize_dtype(dtype))


def _tensor_of(array: jax.Array | np.ndarray) -> torch.Tensor:
    """A tensor on jax with the data of an array."""
    if isinstance(array, jax.core.Tracer):
        raise TypeError(
            f"call_jax got a tracer, which stands for a value while jax traces: {array.aval}.\n"
            "Call the function itself there:  fn(x)"
        )
    if isinstance(array, np.ndarray):
        with jax.enable_x64(True):
            return XLATensor2(jnp.array(array))
    return XLATensor2(jax_programs.unwrapped(array))


def _not_hashable(fn: Callable, leaves: list[Any]) -> TypeError:
    for leaf in leaves:
        try:
            hash(leaf)
        except TypeError:
            break
    return TypeError(
        f"an argument of {jax_functions.name_of(fn)} is neither an array nor hashable, so it is "
        f"not known when to trace again: {type(leaf).__qualname__} (in call_jax).\n"
        "Make it a pytree of jax (jax.tree_util.register_dataclass), or give it a hash."
    )


# --- the op ---------------------------------------------------------------------------------------


def _apply(program: Program, operands: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    """The results of a program, with gradients where operands have some."""
    wanted: list[int] = []
    if torch.is_grad_enabled():
        wanted = [i for i, x in enumerate(operands) if x.requires_grad]
    if wanted or forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active():
        return _Call.apply(program, tuple(wanted), *operands)[: len(program.results)]
    return _record(program, operands)


def _record(program: Program, operands: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
    with torch._C._AutoDispatchBelowAutograd():
        return _op(list(operands) or [_no_operand()], program.number)


class _Call(torch.autograd.Function):
    """The results of a program, then the residuals. These are outputs, because `torch.func` gives
    `setup_context` nothing else."""

    @staticmethod
    def forward(
        program: Program, wanted: tuple[int, ...], *operands: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return tuple(_record(program.linearized(wanted).program, operands))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: tuple[torch.Tensor, ...]) -> None:
        program, wanted, *operands = inputs
        ctx.program, ctx.wanted = program, wanted
        count = len(program.results)
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(
            *(x for i, x in enumerate(output[:count]) if not program.is_differentiable(i)),
            *output[count:],
        )
        ctx.save_for_forward(*operands)
        # All operands, because gradients of gradients need them.
        ctx.outputs = [i for i in program.linearized(wanted).places if i >= len(operands)]
        ctx.save_for_backward(*operands, *(output[i - len(operands)] for i in ctx.outputs))

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        program: Program = ctx.program
        count = len(program.operands)
        all_gradients: list[torch.Tensor | None] = [None] * count
        given = tuple(
            i
            for i, gradient in enumerate(gradients[: len(program.results)])
            if gradient is not None and program.is_differentiable(i)
        )
        if given:
            saved = ctx.saved_tensors
            of_given = [gradients[i] for i in given]
            if torch.is_grad_enabled():
                gradient = program.gradient(ctx.wanted, given)
                found = _apply(gradient, [*saved[:count], *of_given])
            else:
                values = dict(zip([*range(count), *ctx.outputs], saved, strict=True))
                residuals = [values[i] for i in program.linearized(ctx.wanted).places]
                found = _apply(program.backward(ctx.wanted, given), [*residuals, *of_given])
            for i, x in zip(ctx.wanted, found, strict=True):
                all_gradients[i] = x
        return None, None, *all_gradients

    @staticmethod
    def jvp(ctx: Any, *tangents: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        program: Program = ctx.program
        moving = tuple(i for i, x in enumerate(tangents[2:]) if x is not None)
        found = _apply(
            program.tangent(moving), [*ctx.saved_tensors, *(tangents[2 + i] for i in moving)]
        )
        of_results = [x if program.is_differentiable(i) else None for i, x in enumerate(found)]
        num_residuals = len(program.linearized(ctx.wanted).program.results) - len(of_results)
        return *of_results, *(None,) * num_residuals

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple,
        program: Program,
        wanted: tuple[int, ...],
        *operands: torch.Tensor,
    ) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
        found = _batched(info, in_dims[2:], operands, program.linearized(wanted).program)
        return tuple(found), (0,) * len(found)


def _batched(
    info: Any, in_dims: Sequence[int | None], operands: Sequence[torch.Tensor], program: Program
) -> Sequence[torch.Tensor]:
    dims = tuple(
        None if dim is None else dim % x.dim() for dim, x in zip(in_dims, operands, strict=True)
    )
    return _apply(program.vmapped(dims, info.batch_size), operands)


def _vmap(info: Any, in_dims: tuple, operands: list[torch.Tensor], number: int) -> tuple:
    found = _batched(info, in_dims[0], operands, jax_programs.find(number))
    return list(found), [0] * len(found)


def _differentiate(operands: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    """The op with gradients, for graphs of torch.fx, which call it by its name."""
    return list(_apply(jax_programs.find(number), operands))


def _fake(operands: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    """Results without values, for what infers shapes."""
    if isinstance(operands[0], FakeTensor):
        jax_programs.keep_for_ever(number)
    return [
        operands[0].new_empty(result.shape, dtype=registry.TO_TORCH[result.dtype])
        for result in jax_programs.find(number).results
    ]


def _on_cpu(operands: list[torch.Tensor], number: int) -> list[torch.Tensor]:
    program = jax_programs.find(number)
    arrays = [
        decomposition.as_numpy(operand).astype(struct.dtype)
        for operand, struct in zip(operands, program.operands, strict=False)
    ]
    with jax.enable_x64(program.x64), jax.default_device(_cpu()):
        return [host.tensor_of(np.array(x), x) for x in program.compiled(*arrays)]


@functools.cache
def _cpu() -> jax.Device:
    return jax.devices("cpu")[0]


@functools.cache
def _no_operand() -> torch.Tensor:
    """Tells torch the device of a call without operands."""
    return XLATensor2(np.zeros(0, np.float32))


def _lowering(operands: list[jax.Array], program: int) -> list[jax.Array]:
    found = jax_programs.find(program)
    # Hides from XLA what a program filled, as arguments of jax.jit are: it ends the process when it
    # divides integers by zero while it compiles.
    return found(*lax.optimization_barrier(operands[: len(found.operands)]))


def register() -> None:
    """Makes the bridge record the op."""
    _XLAC.register_lowering(OP, False)
    registry.lower(OP)(_lowering)


_library = torch.library.Library(OP.partition("::")[0], "FRAGMENT")
_library.define(f"{OP.partition('::')[2]}(Tensor[] operands, int program) -> Tensor[]")
_library.impl(OP, _on_cpu, "CPU")
_library.impl(OP, _differentiate, "Autograd")
torch.library.register_fake(OP, _fake, lib=_library)
torch.library.register_vmap(OP, _vmap, lib=_library)
_op = torch.ops.torch_xla_lite.call_jax.default
