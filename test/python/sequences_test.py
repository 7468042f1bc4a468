"""Packed sequences, whose lengths are on the CPU, and embeddings with sparse gradients."""

import pytest
import torch
from torch.nn.utils import rnn

import torch_xla_lite  # noqa: F401
from torch_xla_lite import debug

CELLS = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)


def trained(make, place, batch_first, lengths):
    torch.manual_seed(0)
    model = make(3, 4, batch_first=batch_first, bidirectional=True)
    inputs = torch.randn(3, 6, 3) if batch_first else torch.randn(6, 3, 3)
    model, inputs = model.to(place), inputs.to(place).requires_grad_()
    packed = rnn.pack_padded_sequence(
        inputs, torch.tensor(lengths), batch_first=batch_first, enforce_sorted=False
    )
    output, _ = model(packed)
    padded, found = rnn.pad_packed_sequence(output, batch_first=batch_first)
    padded.square().sum().backward()
    assert found.tolist() == lengths
    gradients = [parameter.grad.cpu() for parameter in model.parameters()]
    return [padded.detach().cpu(), inputs.grad.cpu(), *gradients]


@pytest.mark.nightly
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("make", CELLS, ids=lambda cell: cell.__name__)
def test_packed_sequences_train_like_on_the_cpu(make, batch_first):
    debug.reset_metrics()
    found = trained(make, "jax", batch_first, [2, 6, 3])
    assert debug.metrics()["fallbacks"] == {}
    expected = trained(make, "cpu", batch_first, [2, 6, 3])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_packed_sequence_is_that_of_the_cpu():
    sequences = [torch.arange(n * 2.0).view(n, 2) for n in (1, 3, 2)]
    expected = rnn.pack_sequence(sequences, enforce_sorted=False)
    packed = rnn.pack_sequence([s.to("jax") for s in sequences], enforce_sorted=False)
    assert packed.data.is_jax
    assert torch.equal(packed.data.cpu(), expected.data)
    assert torch.equal(packed.batch_sizes, expected.batch_sizes)
    for found, sequence in zip(rnn.unpack_sequence(packed), sequences, strict=True):
        assert torch.equal(found.cpu(), sequence)


def test_packed_sequences_move():
    packed = rnn.pack_sequence([torch.ones(2, 3), torch.ones(1, 3)])
    assert packed.to("jax").data.is_jax
    assert packed.to("jax").cpu().data.tolist() == packed.data.tolist()


@pytest.mark.parametrize(
    ("lengths", "message"),
    [([6, 2], "to be equal to batch_size"), ([6, 1, 0], "greater than 0")],
)
def test_wrong_lengths_are_refused_as_on_the_cpu(lengths, message):
    for place in ("cpu", "jax"):
        with pytest.raises(RuntimeError, match=message):
            rnn.pack_padded_sequence(torch.ones(6, 3, 3, device=place), lengths)


def test_lengths_on_the_device_are_refused():
    lengths = torch.tensor([3, 2], device="jax")
    with pytest.raises(RuntimeError, match=r"lengths\.cpu\(\)|CPU int64"):
        rnn.pack_padded_sequence(torch.ones(3, 2, 1, device="jax"), lengths)


# --- sparse tensors -------------------------------------------------------------------------------


def test_sparse_gradients_are_refused_with_one_error():
    embedding = torch.nn.Embedding(4, 3, sparse=True).to("jax")
    bag = torch.nn.EmbeddingBag(4, 3, sparse=True).to("jax")
    rows = torch.tensor([[1, 2]], device="jax")
    for module in (embedding, bag):
        # Where the module is called, not in the backward pass.
        with pytest.raises(NotImplementedError, match=r"torch\.nn\.Embedding\(sparse=False\)"):
            module(rows)
        with torch.no_grad():
            assert module(rows).isfinite().all()
