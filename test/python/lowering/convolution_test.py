import jax
import pytest
import torch
from comparison import check

import torch_xla_lite
from torch_xla_lite.lowering.base import registry, target

aten = torch.ops.aten

# Input, weight, stride, padding, dilation, transposed, output padding, groups.
CASES = {
    "strided": ((2, 4, 9, 9), (6, 4, 3, 3), [2, 2], [1, 1], [1, 1], False, [0, 0], 1),
    "one-d, grouped, dilated": ((2, 4, 9), (6, 2, 3), [2], [1], [2], False, [0], 2),
    "three-d": ((2, 4, 5, 5, 5), (6, 4, 3, 3, 3), [1, 2, 1], [1, 1, 0], [1] * 3, False, [0] * 3, 1),
    "depthwise": ((2, 4, 9, 9), (8, 1, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 4),
    "transposed": ((2, 4, 9, 9), (4, 3, 3, 3), [2, 2], [1, 1], [1, 1], True, [1, 1], 1),
    "transposed, grouped": ((2, 4, 9, 9), (4, 3, 3, 2), [2, 3], [1, 0], [2, 1], True, [1, 0], 2),
    "transposed, one-d": ((2, 4, 7), (4, 2, 3), [2], [0], [1], True, [0], 2),
    "one number for all dimensions": ((2, 4, 9, 9), (6, 4, 3, 3), [2], [1], [1], False, [0], 1),
}


def operands(case):
    shape, window, *geometry = case
    x, weight = torch.randn(shape), torch.randn(window)
    channels = window[1] * geometry[-1] if geometry[3] else window[0]
    return x, weight, torch.randn(channels), geometry


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("name", ["strided", "one-d, grouped, dilated", "transposed", "three-d"])
@pytest.mark.parametrize("mask", [[True] * 3, [True, False, False], [False, True, False]], ids=str)
def test_threads_have_some_images_each(two_threads, name, mask):
    shape, window, *geometry = CASES[name]
    shape = (5, shape[1], *[16 if len(shape) > 4 else 64 for _ in shape[2:-1]], 200)
    x, weight, bias, geometry = operands((shape, window, *geometry))
    check(aten.convolution, x, weight, bias, *geometry, rtol=1e-4, atol=1e-4)
    grad = torch.randn_like(aten.convolution(x, weight, bias, *geometry))
    sizes = [len(bias)]
    check(aten.convolution_backward, grad, x, weight, sizes, *geometry, mask, rtol=1e-3, atol=1e-2)


KINDS = {
    "plain": {},
    "strided, padded": {"stride": 2, "padding": 2},
    "dilated": {"dilation": 2, "padding": 1},
    "strided and dilated": {"stride": 2, "dilation": 3, "padding": 2},
    "stride above the kernel": {"stride": 4},
    "grouped": {"groups": 2, "padding": 1},
    "one channel a group": {"groups": 4, "padding": 1, "stride": 2},
    "kernel of one element": {"kernel": 1, "stride": 2},
    "one channel a group, large kernel": {"groups": 4, "kernel": 5, "stride": 2, "padding": 1},
    "kernel that is mostly on padding": {"kernel": 7, "padding": 3, "size": 2},
    "large image": {"size": 40, "padding": 1},
}
HALVES = [torch.float16, torch.bfloat16]
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}


def of_kind(rank, transposed=False, dtype=torch.float32, size=9, kernel=3, groups=1, **geometry):
    """Operands of `aten.convolution` and of its gradient."""
    size = min(size, 12) if rank == 3 else size
    parameters = [[geometry.get(name, default)] * rank for name, default in DEFAULTS.items()]
    x = torch.randn(2, 4, *[size] * rank, dtype=dtype)
    channels = (4, 8 // groups) if transposed else (8, 4 // groups)
    weight = torch.randn(*channels, *[kernel] * rank, dtype=dtype)
    extra = [1 if transposed and max(parameters[0]) > 1 else 0] * rank
    return x, weight, [*parameters, transposed, extra, groups]


DEFAULTS = {"stride": 1, "padding": 0, "dilation": 1}


def check_all_directions(x, weight, geometry):
    tolerance = TOLERANCE[x.dtype]
    grad = torch.randn_like(aten.convolution(x, weight, None, *geometry))
    scale = {"rtol": tolerance, "atol": tolerance * weight[0].numel() ** 0.5}
    check(aten.convolution, x, weight, None, *geometry, **scale)
    mask = [True, True, False]
    scale["atol"] *= max(1, (grad.numel() / len(weight)) ** 0.5)
    check(aten.convolution_backward, grad, x, weight, None, *geometry, mask, **scale)


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("transposed", [False, True], ids=["plain", "transposed"])
@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_every_kind_in_every_number_of_dimensions(kind, rank, transposed):
    if transposed and kind.get("padding", 0) > 1 and kind.get("size") == 2:
        kind = {**kind, "padding": 1}  # The result would have no elements.
    check_all_directions(*of_kind(rank, transposed, **kind))


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("dtype", [torch.float64, *HALVES], ids=str)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_every_kind_in_every_dtype(kind, dtype):
    check_all_directions(*of_kind(2, dtype=dtype, **kind))


# Input, weight, stride, padding, groups, and what the convolution and its gradients become.
CHOICES = {
    "large image": ((8, 64, 16, 16), (64, 64, 3, 3), 1, 1, 1, "aten"),
    "kernel of one element": ((8, 64, 16, 16), (96, 64, 1, 1), 1, 0, 1, "aten"),
    "that skips elements": ((8, 64, 16, 16), (96, 64, 1, 1), 2, 0, 1, "dot_general"),
    "large weight": ((8, 512, 4, 4), (512, 512, 3, 3), 1, 1, 1, "dot_general"),
    "kernel larger than the image": ((8, 256, 2, 2), (256, 256, 3, 3), 1, 1, 1, "dot_general"),
    "one channel a group": ((8, 32, 8, 8), (32, 1, 3, 3), 1, 1, 32, "aten"),
    "groups": ((8, 128, 16, 16), (128, 4, 3, 3), 1, 1, 32, "aten"),
    "three dimensions": ((2, 64, 8, 16, 16), (64, 64, 3, 3, 3), 1, 1, 1, "aten"),
}


def lowered(case, dtype="float32") -> list[str]:
    """The programs of a convolution, of its input's, its weight's and its bias's gradient."""
    shape, kernel, stride, padding, groups, _ = case
    rank = len(shape) - 2
    geometry = [[stride] * rank, [padding] * rank, [1] * rank, False, [0] * rank, groups]
    meta = torch.empty(shape, device="meta"), torch.empty(kernel, device="meta")
    x, w, y = (
        jax.ShapeDtypeStruct(tuple(t.shape), dtype)
        for t in (*meta, aten.convolution(*meta, None, *geometry))
    )

    bias = jax.ShapeDtypeStruct(kernel[:1], dtype)

    def backward(*wanted):
        outs = [out if want else None for out, want in zip((x, w, bias), wanted, strict=True)]
        return lambda y, x, w: registry.call(
            "aten::convolution_backward", [y, x, w, [kernel[0]], *geometry, [*wanted]], outs
        )

    with jax.enable_x64(True):
        return [
            jax.jit(program).lower(*operands).as_text()
            for program, operands in [
                (
                    lambda x, w: registry.call("aten::convolution", [x, w, None, *geometry], [y]),
                    (x, w),
                ),
                (backward(True, False, False), (y, x, w)),
                (backward(False, True, False), (y, x, w)),
                (backward(False, False, True), (y, x, w)),
            ]
        ]


EXPENSIVE = {
    "aten": "@torch_xla_lite.infallible_aten",
    "convolution": "stablehlo.convolution",
    "dot_general": "stablehlo.dot_general",
}


def operations(case, dtype="float32") -> list[set[str]]:
    return [{name for name, text in EXPENSIVE.items() if text in p} for p in lowered(case, dtype)]


@pytest.mark.few_daily(4)
@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES.keys())
def test_the_form_is_chosen_by_the_shape(case):
    assert operations(case) == [*[{case[-1]}] * 3, set()]


def test_the_gradient_of_a_large_kernel_for_one_channel_is_a_product():
    case = ((8, 32, 8, 8), (32, 1, 5, 5), 1, 2, 32, "aten")
    assert operations(case) == [{"aten"}, {"aten"}, {"dot_general"}, set()]


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("case", CHOICES.values(), ids=CHOICES.keys())
def test_a_gpu_uses_its_own_convolutions(monkeypatch, case):
    monkeypatch.setattr(target, "platform", lambda: "gpu")
    assert operations(case, "bfloat16") == [*[{"convolution"}] * 3, set()]


@pytest.mark.parametrize("dtype", ["int32", "complex64"])
def test_what_torch_has_no_fast_kernel_for_is_a_convolution_of_xla(dtype):
    assert operations(CHOICES["large image"], dtype) == [*[{"convolution"}] * 3, set()]


def test_taps_on_padding_are_left_out():
    program = lowered(((8, 512, 2, 2), (512, 512, 7, 7), 1, 3, 1, "dot_general"))[0]
    (line,) = (line for line in program.splitlines() if "stablehlo.dot_general" in line)
    assert "tensor<512x512x9xf32>" in line


@pytest.mark.few_daily(1)
@pytest.mark.parametrize(("size", "padding"), [(8, 0), (10, 0), (9, 1)])
def test_patches_side_by_side_are_made_without_slices(size, padding):
    x, weight = torch.randn(1, 3, size, size), torch.randn(64, 3, 4, 4)
    check_all_directions(x, weight, [[4, 4], [padding] * 2, [1, 1], False, [0, 0], 1])
    case = ((1, 3, size, size), (64, 3, 4, 4), 4, padding, 1, "dot_general")
    assert operations(case) == [*[{"dot_general"}] * 3, set()]
    forward, _, of_weight, _ = lowered(case)
    assert "stablehlo.slice" not in forward + of_weight


GROUPED = ((2, 8, 6, 6), (8, 2, 3, 3), [1, 1], [1, 1], [1, 1], False, [0, 0], 4)


def test_a_kernel_of_torch_is_no_fallback_and_nobody_waits_for_it(monkeypatch):
    awaited = []
    monkeypatch.setattr(jax, "block_until_ready", awaited.append)
    before = torch_xla_lite.debug.metrics()["fallbacks"]
    x, weight, bias, geometry = operands(GROUPED)
    result = aten.convolution(*(t.to("jax") for t in (x, weight, bias)), *geometry)
    torch_xla_lite.sync()
    torch.testing.assert_close(result.cpu(), aten.convolution(x, weight, bias, *geometry))
    assert (awaited, torch_xla_lite.debug.metrics()["fallbacks"]) == ([], before)
