"""Lowers ops to calls of ATen's CPU kernels inside the XLA program, for ops without a lowering.

    outs = lower_by_ffi("aten::topk", words, [x], [], [values_struct, indices_struct])

The handler (csrc/ffi) uses XLA's buffers without a copy, but XLA cannot fuse the op with its
neighbours, so ops that run often should have a lowering.

    y, = call_infallible("aten::convolution", [x, weight, None, ...], [struct], work_per_byte=576)

is the same in a lowering that found ATen's kernel to be faster than what XLA makes.

    x = store(x)

makes XLA compute and store a value once where it would compute it for each use.

    a, b = split(x)

are the items of x, where programs that XLA fuses read them from memory of their own.
"""

from __future__ import annotations

import ctypes
import enum
import functools
import pathlib
from collections.abc import Hashable, Sequence

import numpy as np

from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.base.mesh import elementwise
from torch_xla_lite.lowering.base.tags import Tag
from torch_xla_lite.startup.late_jax import jax

_ATEN = "torch_xla_lite.aten"
_INFALLIBLE_ATEN = "torch_xla_lite.infallible_aten"
_STORE = "torch_xla_lite.store"
_SPLIT = "torch_xla_lite.split"
_RANDOM_KEYS = "torch_xla_lite.random_keys"
_RANDOM_BITS = "torch_xla_lite.random_bits"
_KEEP_MASK = "torch_xla_lite.keep_mask"
_DRAW = "torch_xla_lite.draw"
_RANDOM = (_RANDOM_KEYS, _RANDOM_BITS, _KEEP_MASK, _DRAW)
TARGETS = frozenset({_ATEN, _INFALLIBLE_ATEN, _STORE, _SPLIT, *_RANDOM})

# Calls that fail only for lack of memory, as any program of XLA may: nobody waits for them, and
# their program may overwrite its arguments (foreign_code.py).
INFALLIBLE = TARGETS - {_ATEN}
_LIBRARY = pathlib.Path(__file__).parents[2] / "lib" / "libtorch_xla_lite_ffi.so"


@functools.cache
def register(library: pathlib.Path = _LIBRARY) -> None:
    """Registers the handler with XLA. torch must be loaded before: the library links to it.

    Raises:
      OSError: the library is missing or was built for another torch.
    """
    from torch_xla_lite import _XLAC  # Here, because the package imports this one.

    handler = ctypes.CDLL(str(library))
    _XLAC.set_in_kernel(ctypes.cast(handler.TorchXlaLiteAtenIsInKernel, ctypes.c_void_p).value)
    handler.TorchXlaLiteAtenTypeId.restype = ctypes.c_void_p
    handler.TorchXlaLiteAtenTypeInfo.restype = ctypes.c_void_p
    # Before a client exists, jax only queues registrations, and later performs those of types after
    # those of handlers; XLA needs the types first.
    jax.devices("cpu")
    jax.ffi.register_ffi_type(
        _ATEN,
        {
            "type_id": _capsule(handler.TorchXlaLiteAtenTypeId()),
            "type_info": _capsule(handler.TorchXlaLiteAtenTypeInfo()),
        },
        platform="cpu",
    )
    stages = {
        "instantiate": jax.ffi.pycapsule(handler.TorchXlaLiteAtenInstantiate),
        "execute": jax.ffi.pycapsule(handler.TorchXlaLiteAtenExecute),
    }
    for custom_call in (_ATEN, _INFALLIBLE_ATEN):
        jax.ffi.register_ffi_target(custom_call, stages, platform="cpu")
    for custom_call, symbol in (
        (_STORE, handler.TorchXlaLiteStore),
        (_SPLIT, handler.TorchXlaLiteSplit),
        (_RANDOM_KEYS, handler.TorchXlaLiteRandomKeys),
        (_RANDOM_BITS, handler.TorchXlaLiteRandomBits),
        (_KEEP_MASK, handler.TorchXlaLiteKeepMask),
        (_DRAW, handler.TorchXlaLiteDraw),
    ):
        jax.ffi.register_ffi_target(custom_call, jax.ffi.pycapsule(symbol), platform="cpu")


def store(value: jax.Array) -> jax.Array:
    """`value`, which XLA does not fuse with its uses; for use while `jax.jit` traces, on CPUs."""
    target.refuse_if_portable(_STORE)
    register()

    def call(x: jax.Array) -> jax.Array:
        struct = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return jax.ffi.ffi_call(_STORE, struct, input_output_aliases={0: 0})(x)

    return elementwise(call, value)


def split(values: jax.Array) -> list[jax.Array]:
    """The items of `values`, `[n, ...]`, each `[1, ...]` and stored; for use as `store` is.

    XLA compiles equal code once. Code that reads item 3 of an array is not that which reads item 4.
    """
    target.refuse_if_portable(_SPLIT)
    register()
    item = jax.ShapeDtypeStruct((1, *values.shape[1:]), values.dtype)
    return jax.ffi.ffi_call(_SPLIT, [item] * values.shape[0])(values)


def keep_mask(key: jax.Array, threshold: int, shape: tuple[int, ...]) -> jax.Array:
    """`jax.random.bits(key, shape, np.uint32) < threshold`; for use while `jax.jit` traces, where
    `target.draws_by_kernels()`."""
    target.refuse_if_portable(_KEEP_MASK)
    register()
    call = jax.ffi.ffi_call(_KEEP_MASK, jax.ShapeDtypeStruct(shape, np.bool_))
    return call(jax.random.key_data(key), threshold=np.int64(threshold))


class Distribution(enum.IntEnum):
    """Those of csrc/kernels/distributions.h, with their parameters."""

    NORMAL = 1
    EXPONENTIAL = 2
    CAUCHY = 3
    LOG_NORMAL = 4  # mean and deviation
    GAMMA = 5  # shape
    LOG_GAMMA = 6  # shape
    POISSON = 7  # rate
    BINOMIAL = 8  # count and probability


def draw(
    distribution: Distribution,
    key: jax.Array,
    out: jax.ShapeDtypeStruct | jax.Array,
    *parameters: jax.Array,
) -> jax.Array:
    """Numbers of a distribution, of the shape and dtype of `out`, float32 or float64, as its
    parameters; for use as `keep_mask` is."""
    target.refuse_if_portable(_DRAW)
    register()
    struct = jax.ShapeDtypeStruct(out.shape, out.dtype)
    call = jax.ffi.ffi_call(_DRAW, struct, vmap_method="sequential")
    return call(jax.random.key_data(key), *parameters, distribution=np.int64(distribution))


def random_keys(numbers: jax.Array) -> jax.Array:
    """`uint32[n - 1, 2]`, the data of `fold_in(key(seed), offset)` of each of `uint64[n]` and the
    number behind it; for use as `keep_mask` is."""
    target.refuse_if_portable(_RANDOM_KEYS)
    register()
    struct = jax.ShapeDtypeStruct((numbers.shape[0] - 1, 2), np.uint32)
    return jax.ffi.ffi_call(_RANDOM_KEYS, struct)(numbers)


@functools.cache
def threefry() -> Hashable:
    """jax's default generator, whose bits the kernel makes: an `impl` of keys."""
    from jax.extend import random  # Imports 25 modules.

    jax_impl = random.threefry_prng_impl

    def random_bits(key: jax.Array, bit_width: int, shape: tuple[int, ...]) -> jax.Array:
        if bit_width not in (32, 64):
            return jax_impl.random_bits(key, bit_width, shape)
        target.refuse_if_portable(_RANDOM_BITS)
        register()
        struct = jax.ShapeDtypeStruct(shape, np.dtype(f"uint{bit_width}"))
        return jax.ffi.ffi_call(_RANDOM_BITS, struct)(key)

    return random.define_prng_impl(
        key_shape=(2,),
        seed=jax_impl.seed,
        split=jax_impl.split,
        random_bits=random_bits,
        fold_in=jax_impl.fold_in,
        name="threefry2x32 of torch_xla_lite",
        tag="txl",
    )


def lower_by_ffi(
    op_name: str,
    words: Sequence[int],
    operands: Sequence[jax.Array],
    scalars: Sequence[jax.Array],
    outs: Sequence[jax.ShapeDtypeStruct | None],
    *,
    step: int = -1,
) -> list[jax.Array | None]:
    """A call of the ATen CPU kernel `op_name`, for use while `jax.jit` traces.

    Call it under `jax.enable_x64(True)`.

    Args:
      op_name: full name, such as "aten::add.Tensor". It must not be a random op, whose numbers
        would come from the CPU's generator.
      words: the arguments as csrc/ops/words.h describes them, each a 64-bit pattern, signed
        or not.
      operands: the tensors that the words refer to, in order.
      scalars: the runtime scalars that the words refer to, in order; `[]` each.
      outs: shape and dtype per output, list outputs flattened; None for an output that torch leaves
        undefined.
      step: of the graph, which errors name; -1: none.

    Returns:
      One array per element of `outs`, or None if that is None.

    Raises:
      jax.errors.JaxRuntimeError: the op is unknown or the words are malformed (when the program is
        compiled), or the kernel raises an error (when it runs). The message has the form of
        `failure`.
    """
    return _call(_ATEN, op_name, words, [*operands, *scalars], outs, step=step)


def call_infallible(
    op_name: str,
    args: Sequence[jax.Array | Sequence[int] | int | None],
    outs: Sequence[jax.ShapeDtypeStruct | None],
    *,
    work_per_byte: int,
    batched: str = "",
) -> list[jax.Array | None]:
    """A call of an ATen CPU kernel that raises no error for these arguments.

    Args:
      args: in schema order, all of them. Lists are of numbers, or of bools.
      work_per_byte: how much the kernel computes for each byte that it touches, as a multiple of
        what addition does; decides whether it may use several threads (csrc/ffi/threads.h).
      batched: for each operand and defined output "1" if it has a row for each item of a batch,
        else "0"; such an output is a sum over the items. Several threads then have some items each.
        "" if no item can be computed alone.

    Otherwise as `lower_by_ffi`.
    """
    words: list[int] = []
    for arg in args:
        words += _encoded(arg)
    operands = [arg for arg in args if isinstance(arg, jax.Array)]
    given = {"work_per_byte": work_per_byte, "batched": batched}
    return _call(_INFALLIBLE_ATEN, op_name, words, operands, outs, **given)


def _call(
    custom_call: str,
    op_name: str,
    words: Sequence[int],
    operands: Sequence[jax.Array],
    outs: Sequence[jax.ShapeDtypeStruct | None],
    *,
    step: int = -1,
    work_per_byte: int = 1,
    batched: str = "",
) -> list[jax.Array | None]:
    target.refuse_if_portable(op_name)
    register()
    call = jax.ffi.ffi_call(custom_call, [out for out in outs if out is not None])
    results = iter(
        call(
            *operands,
            op=op_name,
            step=np.int64(step),
            words=np.array([word & 0xFFFF_FFFF_FFFF_FFFF for word in words], np.uint64).view(
                np.int64
            ),
            defined=defined(outs),
            work_per_byte=np.int64(work_per_byte),
            batched=batched,
        )
    )
    return [None if out is None else next(results) for out in outs]


def failure(op_name: str, step: int, error: Exception) -> str:
    """What csrc/ffi/handler.cc says of an error; compiler/graph_errors.py reads it."""
    return f"step {step}, {op_name}: {type(error).__name__}: {error}"


def defined(outs: Sequence[jax.ShapeDtypeStruct | None]) -> str:
    """Which outputs exist, as csrc/aten/aten_call.h takes it."""
    return "".join("0" if out is None else "1" for out in outs)


def _encoded(arg: jax.Array | Sequence[int] | int | None) -> list[int]:
    """The words of an argument (csrc/ops/words.h)."""
    match arg:
        case None:
            return [Tag.NONE]
        case jax.Array():
            return [Tag.TENSOR]
        case bool():
            return [Tag.BOOL.head(arg)]
        case int():
            return [Tag.INT, arg]
    tag = Tag.BOOL_LIST if isinstance(arg[0], bool) else Tag.INT_LIST
    return [tag.head(len(arg)), *map(int, arg)]


def _capsule(address: int) -> object:
    """A data pointer as the PyCapsule that jax expects."""
    return jax.ffi.pycapsule(ctypes.c_void_p(address))
