"""Strides that programs ask for: channels_last, empty_strided, and copies that preserve them."""

import pytest
import torch

import torch_xla_lite  # noqa: F401

LAST = torch.channels_last


@pytest.fixture
def images():
    return torch.arange(2 * 3 * 4 * 5.0).view(2, 3, 4, 5)


def check(result, expected):
    """On jax as on the CPU: strides and values."""
    assert result.is_jax
    assert result.stride() == expected.stride()
    assert result.is_contiguous() == expected.is_contiguous()
    assert result.cpu().stride() == expected.stride()
    assert torch.equal(result.cpu(), expected)


@pytest.mark.few_daily(4)
@pytest.mark.parametrize(
    "convert",
    [
        lambda x: x.to(memory_format=LAST),
        lambda x: x.contiguous(memory_format=LAST),
        lambda x: x.clone(memory_format=LAST),
        lambda x: x.to(memory_format=LAST).clone(),
        lambda x: x.to(memory_format=LAST).contiguous(),
        lambda x: x.to(torch.float64, memory_format=LAST),
        lambda x: x.to(memory_format=LAST).to(torch.float64),
        lambda x: torch.zeros_like(x, memory_format=LAST),
        lambda x: torch.ones_like(x.to(memory_format=LAST)),
        lambda x: x.t().clone() if x.dim() == 2 else x.transpose(1, 3).clone(),
        lambda x: x.expand(2, 3, 4, 5)[:, :1].expand(2, 3, 4, 5).clone(),
        lambda x: x.permute(2, 0, 3, 1).clone(memory_format=torch.contiguous_format),
        lambda x: x[:, :, None].to(memory_format=torch.channels_last_3d),
    ],
)
def test_strides_are_those_of_other_devices(images, convert):
    check(convert(images.to("jax")), convert(images))


def test_strides_survive_the_way_to_the_device_and_back(images):
    check(images.to(memory_format=LAST).to("jax"), images.to(memory_format=LAST))
    check(images.to("jax", memory_format=LAST), images.to(memory_format=LAST))
    check(images.transpose(0, 1).to("jax"), images.transpose(0, 1))


TRANSPOSED = {
    "nonzero": lambda x: x.nonzero(),
    **{f"rot90 by {k}": lambda x, k=k: x.rot90(k) for k in range(4)},
}


@pytest.mark.parametrize("op", TRANSPOSED.values(), ids=TRANSPOSED)
def test_a_result_that_lies_transposed_in_memory_is_copied_by_flatten(op):
    results = [op(torch.arange(1.0, 7, device=device).view(2, 3)) for device in ("cpu", "jax")]
    for x in results:
        x.flatten().zero_()
    check(*reversed(results))


def test_new_tensors_have_the_strides_asked_for():
    empty = torch.empty(2, 3, 4, 5, device="jax", memory_format=LAST)
    assert empty.is_contiguous(memory_format=LAST)
    assert torch.empty_strided((2, 3), (1, 2), device="jax").stride() == (1, 2)
    assert empty.new_empty_strided((2, 3), (1, 2)).stride() == (1, 2)
    assert torch.rand_like(empty).stride() == empty.stride()


def test_a_view_without_elements_lies_as_on_the_cpu():
    empty, expected = (torch.ones(6, 5, device=device)[:, 2:2] for device in ("jax", "cpu"))
    assert (empty.stride(), empty[1].storage_offset()) == ((5, 1), expected[1].storage_offset())


def test_writes_reach_a_tensor_in_another_layout(images):
    tensor, expected = images.to("jax", memory_format=LAST), images.to(memory_format=LAST)
    for x in (tensor, expected):
        x[0, 1] = 7
        x.add_(1).permute(0, 2, 3, 1).view(-1)[3:6] = -1
    check(tensor, expected)


def test_the_wrong_number_of_dimensions_is_an_error():
    with pytest.raises(RuntimeError, match="required rank 4"):
        torch.zeros(2, 3, device="jax").to(memory_format=LAST)


def test_a_module_in_channels_last_trains_like_on_the_cpu(images):
    def gradients(place):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
        model = model.to(place).to(memory_format=LAST)
        x = images.to(place, memory_format=LAST)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
        assert model[0].weight.is_contiguous(memory_format=LAST)
        return [p.detach().cpu() for p in model.parameters()]

    for found, expected in zip(gradients("jax"), gradients("cpu"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


# --- pinned memory --------------------------------------------------------------------------------


def test_host_memory_is_pinned_on_request():
    plain = torch.arange(4.0)
    pinned = plain.pin_memory()
    assert pinned.is_pinned()
    assert pinned[1:].is_pinned()
    assert not plain.is_pinned()
    assert pinned.pin_memory().data_ptr() == pinned.data_ptr()
    assert torch.empty(3, pin_memory=True).is_pinned()
    assert pinned.to("jax", non_blocking=True).tolist() == [0, 1, 2, 3]


def test_memory_is_no_longer_pinned_after_it_is_freed():
    address = torch.empty(1 << 20, pin_memory=True).data_ptr()
    plain = [torch.empty(1 << 20) for _ in range(4)]
    assert not any(tensor.is_pinned() for tensor in plain), address


def test_a_data_loader_pins_its_batches():
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True)
    batches = [batch for (batch,) in loader]
    assert all(batch.is_pinned() for batch in batches)
    assert [batch.to("jax").sum().item() for batch in batches] == [6, 22]


def test_a_tensor_on_the_device_cannot_be_pinned():
    tensor = torch.zeros(1, device="jax")
    assert not tensor.is_pinned()
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        tensor.pin_memory()
