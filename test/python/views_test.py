"""Views and aliases mean on jax what they mean on the CPU."""

import re

import pytest
import torch

import torch_xla_lite


def arange(*shape: int) -> torch.Tensor:
    """0, 1, 2, ... in `shape`, as float32 on jax."""
    return torch.arange(float(torch.Size(shape).numel())).view(shape).to("jax")


# --- writes through views reach the base ----------------------------------------------------------


# Others are in overwriting_test.py and random_programs_test.py.
WRITES = {
    "real and imaginary parts": lambda x: (
        torch.view_as_complex(x.view(6, 2)).real.fill_(1),
        torch.view_as_complex(x.view(6, 2)).imag.mul_(2),
    ),
    "detach": lambda x: x.requires_grad_().detach().add_(1),
    "data": lambda x: x.requires_grad_().data.add_(1),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_write_through_a_view_reaches_the_base(write):
    base = arange(3, 4)
    on_cpu = base.cpu()
    write(base)
    write(on_cpu)
    assert base.tolist() == on_cpu.tolist() != arange(3, 4).tolist()


def _write_number(device):
    """The values after `x[:] = 5` for an expanded x, or the error: torch 2.15 has none."""
    base = torch.zeros(1, device=device)
    try:
        base.expand(3)[:] = 5
    except RuntimeError as error:
        return str(error).partition(" memory location")[0]
    return base.tolist()


def test_a_number_is_written_to_an_expanded_tensor_as_on_the_cpu():
    assert _write_number("jax") == _write_number("cpu")


def test_an_expanded_tensor_can_be_copied_to_itself_or_be_empty():
    expanded = torch.ones(1, device="jax").expand(3)
    assert expanded.copy_(expanded).tolist() == [1, 1, 1]
    assert torch.zeros(1, 0, device="jax").expand(3, 0).copy_(torch.ones(3, 0)).numel() == 0


def test_write_to_one_element_of_an_expanded_tensor():
    base = torch.zeros(2, device="jax")
    base[1].expand(3)[0].fill_(5)
    assert base.tolist() == [0, 5]


def test_write_through_a_window_that_overlaps_others():
    base = torch.zeros(4, device="jax")
    base.unfold(0, 2, 1)[1].copy_(torch.tensor([1.0, -0.0], device="jax"))
    assert base.tolist() == [0, 1, 0, 0]
    assert base.signbit().tolist() == [False, False, True, False]


def test_an_expanded_tensor_can_change_its_shape_in_place():
    base = torch.zeros(1, 1, device="jax")
    view = base.expand(1, 3)
    view.squeeze_(0)
    assert view.shape == (3,)


# --- what is no view ------------------------------------------------------------------------------


# database_test.py has those that are copies.
def test_what_changes_nothing_is_the_tensor():
    base = torch.zeros(2, device="jax")
    assert base.contiguous() is base
    assert base.to(torch.float32) is base


# --- strides and storage --------------------------------------------------------------------------


def test_a_view_knows_its_base():
    base = torch.zeros(2, 2, device="jax")
    assert base[0]._base is base
    assert base[0]._is_view()


def test_a_view_that_cannot_be_raises_as_on_the_cpu():
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        arange(2, 3).t().view(6)


def test_version_counts_writes():
    base = torch.zeros(2, device="jax")
    before = base._version
    base[0].add_(1)
    assert base._version == before + 1


def test_backward_notices_a_value_that_was_overwritten():
    x = torch.ones(2, device="jax", requires_grad=True)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_leaf_that_needs_a_gradient_cannot_be_written():
    with pytest.raises(RuntimeError, match="leaf Variable"):
        torch.ones(2, device="jax", requires_grad=True).add_(1)


@pytest.mark.parametrize(
    "sections", [torch.tensor([1, 3]), torch.tensor(3)], ids=["places", "count"]
)
@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_tensor_split_by_a_tensor(sections, device):
    x = torch.arange(10.0).jax().requires_grad_()
    parts = torch.tensor_split(x, sections.to(device))
    wanted = torch.tensor_split(torch.arange(10.0), sections)
    assert [part.tolist() for part in parts] == [part.tolist() for part in wanted]
    (parts[1] * 2).sum().backward()
    assert x.grad.sum().item() == 2 * len(wanted[1])


BEYOND = ((4, 4), (3, 1), 5)


@pytest.mark.parametrize(
    "op",
    [
        lambda x: torch.as_strided_copy(x, *BEYOND),
        lambda x: torch.as_strided_scatter(x, torch.ones(4, 4, device=x.device), *BEYOND),
    ],
    ids=["copy", "scatter"],
)
def test_strides_that_leave_the_storage_raise(op):
    for x in (torch.arange(10.0), arange(10)):
        with pytest.raises(RuntimeError, match="out of bounds for storage of size 40"):
            op(x)


def test_as_strided_copy_and_scatter_refer_to_the_storage_of_a_view():
    view = torch.arange(12.0).view(3, 4)[1:].t()
    other = arange(3, 4)[1:].t()
    for op in (
        lambda x: torch.as_strided_copy(x, (2, 3), (4, 1), 1),
        lambda x: torch.as_strided_copy(x, (2, 2), (2, 1)),
        lambda x: torch.as_strided_copy(x, (2, 3), (4, 1), 1, out=torch.empty(0, device=x.device)),
        lambda x: torch.as_strided_scatter(x, torch.ones(2, 3, device=x.device), (2, 3), (4, 1), 1),
        lambda x: torch.ops.aten.as_strided_scatter.out(
            x, torch.ones(2, 3, device=x.device), [2, 3], [4, 1], 1, out=torch.empty_like(x)
        ),
    ):
        assert op(other).tolist() == op(view).tolist()
    assert other.tolist() == view.tolist()


OTHER_DTYPES = {
    "real": lambda x: torch.view_as_complex(x)[2:].real,
    "imag": lambda x: torch.view_as_complex(x)[2:].imag,
    "view_as_real": lambda x: torch.view_as_real(torch.view_as_complex(x)[2:]),
    "view_as_complex": lambda x: torch.view_as_complex(x[2:]),
    "view of a narrower dtype": lambda x: x[3].view(torch.int8),
    "view of a wider dtype": lambda x: x[3:].view(torch.float64),
}


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("view", OTHER_DTYPES.values(), ids=OTHER_DTYPES.keys())
def test_the_offset_of_a_view_is_in_elements_of_its_dtype(view):
    wanted, got = (view(torch.arange(12.0).view(6, 2).to(device)) for device in ("cpu", "jax"))
    assert got.storage_offset() == wanted.storage_offset()
    assert got.as_strided((2,), (1,)).tolist() == wanted.as_strided((2,), (1,)).tolist()
    got.as_strided((1,), (1,)).zero_()
    assert got.cpu().flatten()[0] == 0


@pytest.mark.parametrize("device", ["cpu", "jax"])
def test_a_view_of_wider_elements_begins_at_one(device):
    x = torch.arange(12.0, device=device)
    with pytest.raises(RuntimeError, match=r"storage_offset\(\) must be divisible"):
        x[1:3].view(torch.float64)


def test_as_strided_of_conjugated_numbers_conjugates_the_storage():
    values = torch.tensor([1 + 1j, 2 + 2j, 3 + 3j])
    for x in (values.jax(), values):
        view = x.conj()
        assert view[1:].as_strided((2,), (1,), 0).tolist() == [1 - 1j, 2 - 2j]
        assert view[1:].conj().as_strided((1,), (1,)).tolist() == [2 + 2j]
        assert torch.as_strided_copy(view, (2,), (1,), 1).tolist() == [2 - 2j, 3 - 3j]
        scattered = torch.as_strided_scatter(view, torch.tensor([5j]).to(x.device), (1,), (1,), 1)
        assert scattered.tolist() == [1 - 1j, 5j, 3 - 3j]
        written = x.clone()
        written.conj().as_strided((1,), (1,), 1).fill_(5j)
        assert written.tolist() == [1 + 1j, -5j, 3 + 3j]


def test_a_write_through_an_unsafe_view_reaches_the_base():
    base = torch.zeros(2, 3, device="jax")
    torch.ops.aten._unsafe_view(base, (6,))[4] = 5
    assert base.tolist() == [[0, 0, 0], [0, 5, 0]]
    a, b = torch.arange(4.0).view(2, 2), torch.arange(6.0).view(2, 3)
    out = torch.kron(a.jax(), b.jax(), out=torch.empty(4, 6, device="jax"))
    assert torch.equal(out.cpu(), torch.kron(a, b))


UNSAFE = {
    "unsafe_chunk": lambda x: x.unsafe_chunk(2),
    "unsafe_split": lambda x: x.unsafe_split(2),
    "unsafe_split_with_sizes": lambda x: x.unsafe_split_with_sizes([1, 3]),
}


@pytest.mark.parametrize("split", UNSAFE.values(), ids=UNSAFE)
def test_the_parts_of_an_unsafe_split_share_memory_and_may_be_written_below_autograd(split):
    base = torch.ones(4, device="jax", requires_grad=True) * 1
    first, second = split(base)
    first.add_(1)
    assert base.tolist() == [*first.tolist(), *second.tolist()]
    (3 * second).sum().backward()


# --- inference mode -------------------------------------------------------------------------------

VIEWS = {
    "view": lambda x: x.view(6),
    "t": lambda x: x.t(),
    "select": lambda x: x[0],
    "unbind": lambda x: x.unbind()[0],
    "detach": lambda x: x.detach(),
    "view of a view": lambda x: x[1:].t(),
}


def tensor_and_view(view, device, in_inference_mode: tuple[bool, bool]) -> list:
    """A tensor and a view of it, made in or outside inference mode; and what they are."""
    of_tensor, of_view = in_inference_mode
    with torch.inference_mode(of_tensor):
        x = torch.arange(6.0).view(2, 3).to(device) + 1
    with torch.inference_mode(of_view):
        y = view(x)
    with torch.inference_mode():
        y.mul_(2)
    versions = [] if of_tensor else [x._version, y._version]
    return [x.tolist(), y.tolist(), x.is_inference(), y.is_inference(), y._is_view(), versions]


@pytest.mark.parametrize(
    "in_inference_mode", [(a, b) for a in (False, True) for b in (False, True)]
)
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS.keys())
def test_views_in_and_outside_inference_mode_are_what_they_are_on_the_cpu(view, in_inference_mode):
    expected = tensor_and_view(view, "cpu", in_inference_mode)
    assert tensor_and_view(view, "jax", in_inference_mode) == expected


PARTS = {
    "unbind": lambda x: x.unbind(0),
    "unbind of another dimension": lambda x: x.t().unbind(-1),
    "split": lambda x: x.split(1),
    "split with a rest": lambda x: x.split(3),
    "split with sizes": lambda x: x.split([0, 1, *[3] * 16, 0, 1]),
    "chunk": lambda x: x.chunk(10),
    "iteration": list,
}


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_reading_many_parts_takes_one_step_for_each(parts):
    x = arange(50, 2)
    torch_xla_lite.sync()
    read = [part + 1 for part in parts(x)]
    steps = re.findall(r"= aten::(\w+)", str(torch_xla_lite.debug.graph()))
    views = [op for op in steps if op not in ("t", "add")]
    assert set(views) <= {"select", "slice"}
    assert 0 < len(views) <= len(read)
    for found, wanted in zip(read, parts(x.cpu()), strict=True):
        assert torch.equal(found.cpu(), wanted + 1)


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_writes_through_many_parts_reach_the_base(parts):
    ours, wanted = arange(50, 2), arange(50, 2).cpu()
    for x in (ours, wanted):
        views = parts(x)
        x.add_(1)
        views[2].mul_(3)
        views[-1].add_(views[4].sum())
    assert torch.equal(ours.cpu(), wanted)


@pytest.mark.parametrize("dim", [2, -3])
@pytest.mark.parametrize("parts", [torch.unbind, lambda x, d: x.split(1, d)])
def test_parts_of_a_missing_dimension_raise(parts, dim):
    with pytest.raises(IndexError, match="Dimension out of range"):
        parts(arange(50, 2), dim)
