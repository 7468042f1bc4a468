"""Factories, and programs without tables of positions."""

import itertools

import jax
import numpy as np
import pytest
import torch
from comparison import check

from torch_xla_lite.lowering import factories, views

aten = torch.ops.aten


def test_windows_and_frequencies():
    check(aten.hann_window, 9)
    check(aten.hann_window.periodic, 9, False, dtype=torch.float64)
    check(aten.hamming_window.periodic_alpha, 8, True, 0.3)
    check(aten.kaiser_window.beta, 7, True, 9.5)
    check(aten.fft_fftfreq, 6, 0.5)
    for op, number, spacing in itertools.product(
        (aten.fft_fftfreq, aten.fft_rfftfreq), (0, 1, 4), (0.0, -0.0, 1.0)
    ):
        check(op, number, spacing)


def struct(*sizes):
    return jax.ShapeDtypeStruct(sizes, np.float32)


PROGRAMS = {
    "as_strided": (lambda x: views.as_strided(x, [300, 300], [3, 1], 0), struct(1500)),
    "as_strided_scatter": (
        lambda x, y: views.as_strided_scatter(x, y, [300, 300], [300, 1]),
        struct(90000),
        struct(300, 300),
    ),
    "unfold": (lambda x: views.unfold(x, 0, 300, 1), struct(1000)),
    "arange": (lambda: factories.arange_end(9000, outs=[struct(9000)]),),
    "linspace": (lambda: factories.linspace(0, 1, 9000, outs=[struct(9000)]),),
    "logspace": (lambda: factories.logspace(0, 1, 9000, outs=[struct(9000)]),),
    "eye": (lambda: factories.eye(300, outs=[struct(300, 300)]),),
    "tril_indices": (lambda: factories.tril_indices(300, 300, outs=[struct(2, 45150)]),),
    "triu_indices": (lambda: factories.triu_indices(300, 300, outs=[struct(2, 45150)]),),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_text_of_a_program_has_no_tables(name):
    function, *operands = PROGRAMS[name]
    with jax.enable_x64(True):
        text = jax.jit(function).lower(*operands).as_text()
    assert max(len(line) for line in text.splitlines()) < 500
