"""The numbers of a graph that vary from run to run, as the traced program reads them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from torch_xla_lite.startup.late_jax import jax, jnp, lax

from ..lowering.base import ffi, target


def _keys(numbers: jax.Array) -> jax.Array:
    """The data of the key of each seed and the offset behind it: `uint32[n - 1, 2]`."""
    if target.draws_by_kernels():
        return ffi.random_keys(numbers)
    fold = jax.vmap(lambda seed, offset: jax.random.fold_in(jax.random.key(seed), offset))
    return jax.random.key_data(fold(numbers[:-1], lax.convert_element_type(numbers[1:], np.uint32)))


# So few are read from the array that the program takes. A call of `ffi.split` costs 1 to 2 us.
_FEW_SCALARS = 4


class Scalars:
    """Runtime scalars of a graph, handed out in order.

    decoded: gives all scalars of the graph, each `[1]`, in one dtype. They are decoded together,
        because XLA's CPU compiler takes superlinear time over one bitcast for each.
    rows: those that are still to be handed out.
    keys: gives, for each scalar but the last, the random key of which it is the seed and the next
        one the offset: `uint32[1, 2]`. The generator's code is long, so all are made together.
    """

    def __init__(
        self,
        decoded: Callable[[np.dtype], Sequence[Any]],
        rows: range,
        keys: Callable[[], Sequence[jax.Array]] | None = None,
    ) -> None:
        self._decoded = decoded
        self._rows = rows
        self._keys = keys

    @staticmethod
    def unpack(packed: jax.Array) -> Scalars:
        """Those of `packed`, `int32[n, 2]`: each row the low and high half of 64 bits."""
        count = packed.shape[0]
        is_stored = target.fuses_too_much() and count > _FEW_SCALARS

        @functools.cache
        def decoded(dtype: np.dtype) -> list[jax.Array]:
            # Extension types such as bfloat16 have kind "V" or "f"; integers "i" or "u".
            wide = np.int64 if dtype.kind in "iub" else np.float64
            numbers = lax.convert_element_type(lax.bitcast_convert_type(packed, wide), dtype)
            return ffi.split(numbers) if is_stored else lax.split(numbers, (1,) * count)

        @functools.cache
        def keys() -> list[jax.Array]:
            numbers = lax.bitcast_convert_type(packed, np.uint64)
            return ffi.split(_keys(numbers))

        return Scalars(decoded, range(count), keys if is_stored else None)

    @staticmethod
    def known(packed: np.ndarray) -> Scalars:
        """Those of `packed`, `uint64[n]`, whose values are known while jax traces."""

        def decoded(dtype: np.dtype) -> list[np.ndarray]:
            wide = packed.view(np.int64 if dtype.kind in "iub" else np.float64)
            return np.split(wide.astype(dtype), len(packed))

        return Scalars(decoded, range(len(packed)))

    def take(self, count: int) -> Scalars:
        """The next `count` scalars."""
        taken, self._rows = self._rows[:count], self._rows[count:]
        return Scalars(self._decoded, taken, self._keys)

    def number(self, dtype: np.dtype) -> jax.Array:
        """The next number, `[]`. A complex one takes two scalars."""
        if dtype.kind != "c":
            return self._next(dtype)
        return lax.complex(*(self._next(np.empty(0, dtype).real.dtype) for _ in range(2)))

    def next_float(self) -> Callable[[np.dtype], jax.Array]:
        """Gives the number that is next, a float, in any dtype of floats."""
        row = self._rows[0]
        return lambda dtype: self._at(row, dtype)

    def key(self) -> jax.Array:
        """A random key from the last two scalars: seed and offset of the generator."""
        if self._keys is not None:
            data = self._keys()[self._rows[-2]]
        else:
            data = _keys(jnp.stack([self._at(i, np.dtype(np.uint64)) for i in self._rows[-2:]]))
        impl = ffi.threefry() if target.draws_by_kernels() else None
        return jax.random.wrap_key_data(lax.squeeze(data, (0,)), impl=impl)

    def _next(self, dtype: np.dtype) -> jax.Array:
        row, self._rows = self._rows[0], self._rows[1:]
        return self._at(row, dtype)

    def _at(self, row: int, dtype: np.dtype) -> jax.Array:
        number = self._decoded(dtype)[row]
        return number.reshape(()) if isinstance(number, np.ndarray) else lax.squeeze(number, (0,))
