"""When to advise that the linker should place the functions that run most side by side.

    link_advice.advice("aarch64", cuda=True, wanted=None)    # text for a box
    link_advice.advice("x86_64", cuda=True, wanted=None)     # None

As PyTorch's setup.py does: on 64-bit ARM with CUDA, where processors wait for instructions more
than elsewhere, who has not said whether they want it is told of it.
"""

_ADVICE = """\
This is a build for 64-bit ARM with CUDA. There it can pay that the linker places
the functions that run most side by side (bazel/link_order). Only links differ:
    USE_PRIORITIZED_TEXT_FOR_LD=1 python setup.py develop
To build without it and without this advice:
    USE_PRIORITIZED_TEXT_FOR_LD=0"""


def advice(machine: str, *, cuda: bool, wanted: bool | None) -> str | None:
    """What to tell the user when all is done, or None.

    Args:
      machine: that is built for, as platform.machine() names it.
      cuda: whether the package gets a CUDA library.
      wanted: USE_PRIORITIZED_TEXT_FOR_LD; None where it is unset.
    """
    if machine in ("aarch64", "arm64") and cuda and wanted is None:
        return _ADVICE
    return None
