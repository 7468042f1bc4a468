"""Advice for who builds for 64-bit ARM with CUDA: the linker can place the functions that run most
side by side.

As PyTorch's setup.py gives it: processors wait for instructions there more than elsewhere. Who has
said whether they want it is not told of it (flow.platform_link_options).
"""

from bazel.pybuild import notices

_ADVICE = """\
This is a build for 64-bit ARM with CUDA. There it can pay that the linker places
the functions that run most side by side (bazel/link_order). Only links differ:
    USE_PRIORITIZED_TEXT_FOR_LD=1 python setup.py develop
To build without it and without this advice:
    USE_PRIORITIZED_TEXT_FOR_LD=0"""


def give() -> None:
    """Keeps the advice for the end, in a box."""
    notices.keep(notices.box(_ADVICE))
