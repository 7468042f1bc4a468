"""Registers lowerings for ops that are not part of torch.

An op of another library works on device 'jax' as soon as it has a CPU kernel and a meta ("fake")
function: it is recorded, and XLA calls the CPU kernel. With a lowering it becomes XLA code and
needs no CPU kernel:

    @torch.library.custom_op("example::softsign", mutates_args=())
    def softsign(x: torch.Tensor) -> torch.Tensor:
        return x / (1 + x.abs())


    @softsign.register_fake
    def _(x):
        return torch.empty_like(x)


    @torch_xla_lite.register_lowering("example::softsign")
    def _(x: jax.Array) -> jax.Array:
        return x / (1 + abs(x))

lowering/base/registry.py describes the arguments of a lowering. utils/cpp_extension.py builds C++
code that a lowering can call. The gradient belongs to the op, not to the lowering:
`softsign.register_autograd`.
"""

from collections.abc import Callable

from .. import _XLAC
from ..lowering.base import registry


def register_lowering(op: str, *, constants: bool = False) -> Callable[[Callable], Callable]:
    """Registers the decorated function as the lowering of an op.

    From then on the op is recorded as one op, even if it has an implementation for all devices
    (`custom_op` without `device_types`). A lowering that is registered again, as by a cell of a
    notebook that runs twice, takes the place of the first one, also in graphs that are compiled
    already.

    A lowering may call code outside XLA, by `jax.ffi.ffi_call` or a callback of jax. When that
    fails while the graph runs, the error is raised where a value is needed, names the line that
    recorded the op, and changes no tensor.

    Args:
      op: such as "example::softsign", or "aten::sort.stable" with the name of an overload. The
        lowering of an op that writes to its arguments returns its results, then the new values of
        the arguments that it writes to. For torch's own in-place and `out` ops, register the
        functional form: aten::relu, not aten::relu_.
      constants: whether numbers are constants of the graph: they arrive as Python numbers, and each
        new one compiles a new graph. By default arguments of type `Scalar` arrive as 0-d arrays and
        compile nothing; `float` and `int` are always constants.

    Raises:
      LoweringError: this package has a lowering of the op, or the one that it replaces has other
        `constants`.
      RuntimeError: there is no such op, or it is never recorded under this name; the message says
        what to do.
    """

    def register(fn: Callable) -> Callable:
        existing = registry.find(op)
        if existing is None:
            _XLAC.register_lowering(op, constants)
            return registry.lower(op, constants=constants)(fn)
        _check_replaceable(op, existing, constants)
        del registry.LOWERINGS[op]
        registry.lower(op, constants=constants)(fn)
        _XLAC.clear_cache()
        return fn

    return register


def _check_replaceable(op: str, existing: registry.Lowering, constants: bool) -> None:
    """Raises LoweringError if a lowering cannot take the place of one that there is."""
    if op not in registry.registered_by_users():
        raise registry.LoweringError(f"{op} has a lowering already: {existing.fn}")
    before = existing.facts.constants
    if before != constants:
        raise registry.LoweringError(
            f"{op} was registered with constants={before}, and calls of it may be recorded.\n"
            "Register it so again, or restart Python to change it:  "
            f'register_lowering("{op}", constants={before})'
        )
