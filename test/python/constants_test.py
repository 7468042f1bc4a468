"""The text of a lowered graph does not grow with its shapes: tables are computed in the graph."""

import re
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import torch_xla_lite  # noqa: F401
from torch_xla_lite.compiler import compilation_cache, tracing

N = 200
WINDOW = torch.ones(64)

GRIDS = {
    "affine_grid": lambda x: F.affine_grid(x[:2, :3][None], (1, 1, N, N), align_corners=False),
    "affine_grid of volumes": lambda x: F.affine_grid(
        x[:3, :4][None], (1, 1, 4, N, N), align_corners=True
    ),
}
FACTORIES = {
    "arange": lambda x: x[0] + torch.arange(N, device="jax"),
    "eye": lambda x: x + torch.eye(N, device="jax"),
    "linspace": lambda x: x[0] + torch.linspace(0, 1, N, device="jax"),
    "logspace": lambda x: x[0] + torch.logspace(0, 1, N, device="jax"),
    "tril_indices": lambda x: x.sum() + torch.tril_indices(N, N, device="jax").sum(),
    "triu_indices": lambda x: x.sum() + torch.triu_indices(N, N, device="jax").sum(),
    "bartlett_window": lambda x: x[0] + torch.bartlett_window(N, device="jax"),
    "blackman_window": lambda x: x[0] + torch.blackman_window(N, device="jax"),
    "fftfreq": lambda x: x[0] + torch.fft.fftfreq(N, device="jax"),
    "hamming_window": lambda x: x[0] + torch.hamming_window(N, device="jax"),
    "hann_window": lambda x: x[0] + torch.hann_window(N, device="jax"),
    "kaiser_window": lambda x: x[0] + torch.kaiser_window(N, device="jax"),
    "rfftfreq": lambda x: x[0] + torch.fft.rfftfreq(2 * N - 2, device="jax"),
}
FRAMES = {
    "pad reflect": lambda x: F.pad(x, (N - 1, N - 1), mode="reflect"),
    "pad replicate": lambda x: F.pad(x, (3, 3), mode="replicate"),
    "stft": lambda x: torch.stft(x, 64, 16, window=WINDOW.to("jax"), return_complex=True).abs(),
    "unfold": lambda x: x.unfold(1, 16, 4),
}
MATRICES = {
    "adaptive_max_pool": lambda x: F.adaptive_max_pool2d(x[None], 30),
    "as_strided": lambda x: x.as_strided((N, N), (3, 1)),
    "as_strided_scatter": lambda x: torch.as_strided_scatter(x, x, (N, N), (N, 1)),
    "avg_pool": lambda x: F.avg_pool2d(x[None], 3, 2, 1, count_include_pad=False),
    "max_pool": lambda x: F.max_pool2d(x[None], 3, 2, 1),
    "det": torch.linalg.det,
    "diag": lambda x: torch.diag(x[0]),
    "diag_embed": lambda x: torch.diag_embed(x[:2], 1),
    "diagonal": torch.diagonal,
    "diagonal_scatter": lambda x: torch.diagonal_scatter(x, x[0]),
    "slice with a step": lambda x: x[::3],
    "write to a slice with a step": lambda x: torch.slice_scatter(x, x[: N // 2], 0, 0, N, 2),
}
IMAGES = {
    "col2im": lambda x: F.fold(x.reshape(1, 100, -1), 40, 10, stride=10, padding=80),
    "im2col": lambda x: F.unfold(x, 3, padding=1),
    "interpolate nearest": lambda x: F.interpolate(x, size=N * 3 // 2),
    "interpolate nearest-exact": lambda x: F.interpolate(x, size=N // 3, mode="nearest-exact"),
    "bicubic": lambda x: F.interpolate(x, size=N * 3 // 2, mode="bicubic"),
    "bicubic, antialias": lambda x: F.interpolate(x, size=40, mode="bicubic", antialias=True),
    "bilinear": lambda x: F.interpolate(x, size=N * 3 // 2, mode="bilinear"),
}


class _IsLowered(Exception):
    """Ends a compilation before XLA begins, which would take most of the time."""


@pytest.fixture
def texts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The text of each program, of which a graph may be several."""
    found: list[str] = []
    lower_graph = tracing.lower_graph

    def lower_only(*arguments):
        found.extend(part.as_text() for part in lower_graph(*arguments).parts)
        raise _IsLowered()

    monkeypatch.setattr(tracing, "lower_graph", lower_only)
    monkeypatch.setattr(compilation_cache, "load", lambda *_: None)
    return found


def _largest_constant(texts: list[str], function: Callable, x: torch.Tensor) -> int:
    """Characters of the largest one in the graph of a function and its gradient."""
    x = x.to("jax").requires_grad_()
    result = function(x)
    if result.requires_grad:
        (result,) = torch.autograd.grad(result.square().sum(), x)
    with pytest.raises(_IsLowered):
        result.cpu()
    return max(map(len, re.findall(r"dense<([^>]*)>", "".join(texts))))


@pytest.mark.few_daily(4)
@pytest.mark.parametrize(
    "function", (each := GRIDS | FACTORIES | FRAMES | MATRICES).values(), ids=each
)
def test_a_graph_has_no_constant_of_the_size_of_a_matrix(function, texts):
    assert _largest_constant(texts, function, torch.ones(N, N)) < 100


@pytest.mark.parametrize("function", IMAGES.values(), ids=IMAGES)
def test_constants_for_images_are_of_one_dimension(function, texts):
    assert _largest_constant(texts, function, torch.ones(1, 1, N, N)) < 64 * N
