"""torch.autocast('jax')."""

import pytest
import torch

import torch_xla_lite  # noqa: F401  device jax


def test_it_casts_for_the_ops_for_which_that_of_cuda_does():
    ops = {
        key: set(torch._C._dispatch_get_registrations_for_dispatch_key(f"Autocast{key}"))
        for key in ("CUDA", "PrivateUse1")
    }
    of_cudnn = {"aten::_cudnn_rnn", "aten::cudnn_convolution", "aten::cudnn_convolution_transpose"}
    assert ops["PrivateUse1"] == ops["CUDA"] - of_cudnn


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_are_computed_in_the_lower_dtype(dtype):
    a = torch.ones(2, 2, device="jax")
    with torch.autocast("jax", dtype=dtype):
        assert (a @ a).dtype == dtype


def test_sensitive_functions_are_computed_in_float32():
    a = torch.ones(2, 2, device="jax", dtype=torch.bfloat16)
    with torch.autocast("jax", dtype=torch.bfloat16):
        assert a.exp().dtype == torch.float32
        assert a.sum().dtype == torch.float32


def test_it_can_be_switched_off_inside():
    a = torch.ones(2, 2, device="jax")
    with torch.autocast("jax", dtype=torch.bfloat16), torch.autocast("jax", enabled=False):
        assert (a @ a).dtype == torch.float32


def test_a_dtype_that_it_does_not_support_disables_it():
    a = torch.ones(2, 2, device="jax")
    with pytest.warns(UserWarning, match="not supported"):
        context = torch.autocast("jax", dtype=torch.float64)
    with context:
        assert (a @ a).dtype == torch.float32


def test_gradients_have_the_dtype_of_the_parameters():
    model = torch.nn.Linear(4, 4).to("jax")
    with torch.autocast("jax", dtype=torch.bfloat16):
        loss = model(torch.ones(2, 4, device="jax")).float().sum()
    loss.backward()
    assert model.weight.grad.dtype == torch.float32
    assert model.weight.grad.tolist() == [[2.0] * 4] * 4


def test_training_agrees_with_autocast_on_the_cpu():
    def losses(device):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        model.to(device)
        x = torch.linspace(-1, 1, 32).view(4, 8).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        result = []
        for _ in range(5):
            optimizer.zero_grad()
            with torch.autocast(device, dtype=torch.bfloat16):
                loss = model(x).float().square().mean()
            loss.backward()
            optimizer.step()
            result.append(loss.item())
        return result

    assert losses("jax") == pytest.approx(losses("cpu"), abs=1e-2)
