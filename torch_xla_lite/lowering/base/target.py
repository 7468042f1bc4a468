"""Describes the platform that XLA compiles for; lowerings that depend on it use only this file.

target.platform()                     # "cpu", "gpu", "tpu"
target.has_host_memory()              # whether ATen's CPU kernels can use XLA's buffers
target.has_threefry()                 # whether this project's generator can draw for jax's
target.float32_precision()            # of float32 products, by torch's settings
target.product_precision(dtype)       # for lax.dot_general
target.rounds_products()              # whether results of products are 16-bit numbers
target.is_slow_at_convolutions()      # whether convolution_forms.py chooses among forms
target.is_slow_at_windows()           # whether pool.py makes windows of slices
target.has_fused_attention(dtype)     # whether cuDNN's is tried
target.fuses_too_much()               # whether values are stored where XLA would not
target.most_scores()                  # of attention that is computed at once
target.has_complex128()               # whether ops of complex128 are lowered
target.has_eig()                      # whether jax has lax.linalg.eig
target.has_singular_vectors(dtype)    # whether XLA compiles lax.linalg.svd with vectors
target.divide(a, b)                   # rounded as torch does on this platform
target.truncate(x, dtype)             # a float as an integer, of any value as torch does
target.convert_complex(x, dtype)      # lax.convert_element_type to a complex dtype
target.split_bits(x, dtype)           # lax.bitcast_convert_type to a narrower dtype
target.compiler_options(has_loops=False)   # of XLA, where they differ from its defaults

with target.portable():               # lowerings for a program that runs on any platform, without
    ...                               #     this package: they call no code outside XLA
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from contextvars import ContextVar

import numpy as np
import torch

from torch_xla_lite.lowering.base.mesh import current
from torch_xla_lite.lowering.base.registry import Unsupported
from torch_xla_lite.startup import late_jax
from torch_xla_lite.startup.late_jax import jax, jnp, lax

_portable: ContextVar[bool] = ContextVar("_portable", default=False)


@contextlib.contextmanager
def portable() -> Iterator[None]:
    """What is lowered in the body is for any platform, and for processes without this package."""
    token = _portable.set(True)
    try:
        yield
    finally:
        _portable.reset(token)


def is_portable() -> bool:
    """Whether lowerings are for any platform."""
    return _portable.get()


def refuse_if_portable(op: str) -> None:
    """Called before code outside XLA is, such as a kernel of this package.

    Raises:
      Unsupported: a portable program must not call it.
    """
    if is_portable():
        raise Unsupported(f"{op} calls code outside XLA, which a portable program cannot have")


def platform() -> str:
    """The platform of the devices that the graph is compiled for; "any" for portable programs."""
    if is_portable():
        return "any"
    mesh = current()
    return _default_platform() if mesh is None else mesh.devices.flat[0].platform


# It does not change, and each graph that is interpreted asks for it.
@functools.cache
def _default_platform() -> str:
    return "cpu" if late_jax.is_by_default() else jax.default_backend()


def has_host_memory() -> bool:
    return platform() == "cpu"


def has_threefry() -> bool:
    """Whether csrc/kernels/threefry.h draws what jax does: jax has its default generator, which
    draws the same bits on each platform, and one device."""
    if late_jax.is_by_default():
        return True
    # Called for each graph that is interpreted: jax.config takes twice as long.
    generator, is_partitionable = _options_of_draws()
    is_default = generator.value == "threefry2x32" and is_partitionable.value
    return is_default and current() is None


@functools.cache
def _options_of_draws() -> tuple:
    return jax.default_prng_impl, jax.threefry_partitionable


def draws_by_kernels() -> bool:
    """True on one CPU: XLA would compile the generator for each key and each array."""
    return has_host_memory() and has_threefry()


def is_slow_at_convolutions() -> bool:
    """True on CPUs: XLA has no fast code for many convolutions there."""
    return platform() == "cpu"


def is_slow_at_windows() -> bool:
    """True on CPUs, where XLA's `reduce_window` is not vectorised."""
    return platform() == "cpu"


def has_fused_attention(dtype: np.dtype) -> bool:
    """True on one GPU, for 16-bit numbers: as cuDNN has it. A mesh would have to divide it."""
    return platform() == "gpu" and current() is None and dtype.itemsize == 2


def fuses_too_much() -> bool:
    """True on CPUs: XLA fuses chains of elementwise ops into each of their uses there, and what is
    written to a slice with the write."""
    return platform() == "cpu"


def most_scores() -> int:
    """On CPUs, as many as a cache holds; forward and backward of 8 heads with 4,096 tokens take
    0.87 of the time so, and 64 MiB in place of 1,024. Elsewhere each block costs reads and writes:
    GPT-2 with 512 tokens accesses 34 GB on an H100, and 49 in blocks of 2**22. The devices of a
    mesh divide the batch and the heads."""
    if platform() == "cpu":
        return 2**22
    return 2**27 if (mesh := current()) is None else 2**27 * mesh.size


def has_complex128() -> bool:
    """False on TPUs. libtpu (0.0.42.1) ends the process at conversions and at absolute values
    ("xprecision_rewriter.cc:3271] Check failed: operand->shape().IsTuple()")."""
    return platform() != "tpu"


def has_eig() -> bool:
    """False on TPUs, for which jax has no rule."""
    return platform() != "tpu"


def has_singular_vectors(dtype: np.dtype) -> bool:
    """False on TPUs for float32. jax's algorithm multiplies there by a diagonal matrix of int64,
    which ends the process (libtpu 0.0.42.1: "shape.h:843] Check failed: buffer != nullptr").
    """
    return platform() != "tpu" or dtype != np.float32


def float32_precision() -> lax.Precision | None:
    """How accelerators multiply float32 numbers; None on CPUs, and where jax's own setting,
    `jax_default_matmul_precision`, says it.

    It is what torch's settings say for CUDA: `torch.set_float32_matmul_precision`,
    `torch.backends.cuda.matmul.allow_tf32`, `torch.backends.fp32_precision` and
    `torch.backends.cuda.matmul.fp32_precision`. Of HIGH, GPUs make TF32, with 10 bits for the
    fraction, and TPUs three products of bfloat16; of DEFAULT, TPUs make one.
    """
    if platform() == "cpu" or jax.config.jax_default_matmul_precision:
        return None
    backends = torch.backends
    chosen = backends.cuda.matmul.fp32_precision
    if chosen == "none":  # and where only CPUs have bfloat16 products
        chosen = backends.fp32_precision
    elif chosen == "tf32" and backends.mkldnn.matmul.fp32_precision == "bf16":
        chosen = "bf16"  # set_float32_matmul_precision("medium")
    return lax.Precision(_PRECISIONS.get(chosen, "highest"))


_PRECISIONS = {"tf32": "high", "bf16": "default"}


def product_precision(dtype: np.dtype) -> lax.Precision | None:
    """Of products of matrices and of convolutions."""
    return None if dtype.itemsize < 4 else float32_precision()


def rounds_products() -> bool:
    """True on GPUs and TPUs, where the kernels of products round as they store, so that no float32
    copy of the result is written and read again. Sums of such results are of 16 bits, too: XLA adds
    the parts that devices of a mesh have first, and would send float32."""
    return platform() in ("gpu", "tpu")


def divide(a: jax.Array, b: jax.Array) -> jax.Array:
    """a / b. If `b` is one number for all elements, XLA multiplies by 1 / b, which rounds twice:
    the mean of 41 ones in float32 is 0.99999994. torch does so on GPUs only. On CPUs a barrier
    hides from XLA that it is one number; the barrier is gone when XLA fuses.
    """
    if platform() == "cpu" and jnp.issubdtype(b.dtype, jnp.floating):
        b = lax.optimization_barrier(b)
    return lax.div(a, b)


def truncate(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """Floats as `int32`, `int64` or `uint64`. What does not fit is the nearest number, and NaN
    zero; on CPUs it is the smallest number, as x86 has it in torch's kernels.
    """
    if platform() != "cpu":
        return lax.convert_element_type(x, dtype)
    if dtype == np.uint64:
        # torch's compilers make two conversions of it, one of what int64 does not have.
        middle = lax.full_like(x, 2.0**63)
        is_large = lax.ge(x, middle)
        half = truncate(lax.select(is_large, lax.sub(x, middle), x), np.dtype(np.int64))
        low = lax.convert_element_type(half, dtype)
        return lax.select(is_large, lax.bitwise_xor(low, lax.full_like(low, 2**63)), low)
    limits = np.iinfo(dtype)
    fits = lax.lt(lax.abs(x), lax.full_like(x, -float(limits.min)))
    integers = lax.convert_element_type(x, dtype)
    return lax.select(fits, integers, lax.full_like(integers, limits.min))


def convert_complex(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """`lax.convert_element_type` to a complex dtype. libtpu (0.0.42.1) ends the process at each one
    from or to complex128 ("xprecision_rewriter.cc:2101] Unsupported CVT X{64|128} expansion from
    c128[] to f32[]"), also at that of a Python number such as 1j, so parts are converted.
    """
    if platform() not in ("any", "tpu") or np.complex128 not in (x.dtype, dtype):
        return lax.convert_element_type(x, dtype)
    of_parts = np.float64 if dtype == np.complex128 else np.float32
    parts = (lax.real(x), lax.imag(x)) if x.dtype.kind == "c" else (x, lax.full_like(x, 0))
    return lax.complex(*(lax.convert_element_type(part, of_parts) for part in parts))


def split_bits(x: jax.Array, dtype: np.dtype) -> jax.Array:
    """`lax.bitcast_convert_type` to a narrower dtype. XLA for GPUs ends the process when one kernel
    computes `x` and this (0.10.2 to 0.11.2: "operand_maps.size() == 1"); after a barrier two do.
    """
    return lax.bitcast_convert_type(
        x if platform() == "cpu" else lax.optimization_barrier(x), dtype
    )


def compiler_options(*, has_loops: bool) -> dict[str, bool]:
    """On CPUs XLA copies each weight that a step both multiplies gradients with and overwrites.
    With this analysis it overwrites the weight after its last use. The analysis does not see what
    a loop reads, which would be what is written later; branches are left out for safety.
    """
    analyses = platform() == "cpu" and not has_loops
    return {"xla_cpu_copy_insertion_use_region_analysis": True} if analyses else {}
