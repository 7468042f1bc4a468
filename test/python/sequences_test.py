"""Packed sequences, whose lengths are on the CPU, and embeddings with sparse gradients."""

import pytest
import torch
from torch.nn.utils import rnn

import torch_xla_lite  # noqa: F401


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
    ("lengths", "message"), [([6, 2], "to be equal to batch_size"), ([6, 1, 0], "greater than 0")]
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
