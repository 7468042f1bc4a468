"""Ops that are not torch's own: what they are on XLA.

An op of another library works on device 'jax' as soon as it has a CPU kernel and a meta ("fake")
function: it is recorded, and XLA calls the CPU kernel. With a lowering it is code of XLA like any
other op, and a CPU kernel is not needed for it:

    @torch.library.custom_op("example::softsign", mutates_args=())
    def softsign(x: torch.Tensor) -> torch.Tensor:
        return x / (1 + x.abs())


    @softsign.register_fake
    def _(x):
        return torch.empty_like(x)


    @torch_xla_lite.register_lowering("example::softsign")
    def _(x: jax.Array) -> jax.Array:
        return x / (1 + abs(x))

What a lowering receives, lowering/registry.py says. One that calls code of its own in C++ is made
with utils/cpp_extension.py. The gradient is that of the op: `softsign.register_autograd`.
"""

from collections.abc import Callable

from . import _XLAC
from .lowering import registry


def register_lowering(
    op: str, *, constants: bool = False, fallible: bool = False
) -> Callable[[Callable], Callable]:
    """Registers the decorated function as what an op is on XLA.

    From then on the op is recorded whole, also where torch has a function of it for all devices
    (`custom_op` without `device_types`). It holds for graphs that are compiled later; so register
    it where the op is defined.

    Args:
      op: such as "example::softsign", or "aten::sort.stable" with the name of an overload. An op
        that writes to arguments has lowerings under its own name: they return its results, then
        the new values of the arguments that it writes to. Of torch's own ops in place or with
        `out` the functional form has it: aten::relu, not aten::relu_.
      constants: numbers arrive as Python numbers and are compiled in, so that each new one compiles
        anew. By default arguments of type `Scalar` arrive as 0-d arrays and compile nothing;
        `float` and `int` are constants always.
      fallible: it calls code of yours that may fail while the program runs, with a message that
        names `op`. The failure is then raised where a value is asked for, with the line that
        recorded the op, and leaves all tensors as they were.

    Raises:
      LoweringError: the op has a lowering already.
      RuntimeError: there is no such op, or it never arrives whole or under this name; the message
        says what to do.
    """

    def register(fn: Callable) -> Callable:
        if op in registry.LOWERINGS:
            raise registry.LoweringError(
                f"{op} has a lowering already: {registry.LOWERINGS[op].fn}"
            )
        _XLAC.register_lowering(op, constants)
        return registry.lower(op, constants=constants, fallible=fallible)(fn)

    return register
