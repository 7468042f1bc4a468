import pytest
import torch
from comparison import check

aten = torch.ops.aten
A = [torch.randn(3), torch.randn(2, 2), torch.tensor(2.0)]
B = [torch.rand(3) + 1, torch.rand(2, 2) + 1, torch.tensor(3.0)]
C = [torch.rand(3) + 1, torch.rand(2, 2) + 1, torch.tensor(0.5)]


def parameters(*lists):
    return [[x.clone() for x in tensors] for tensors in lists]


STEPS = [torch.tensor(3.0)] * 3


@pytest.mark.few_daily(2)
@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("name", ["_fused_adam", "_fused_adamw"])
def test_fused_adam(name, maximize, amsgrad):
    lists = parameters(A, B, A, B, C if amsgrad else [], STEPS)
    options = {"beta1": 0.9, "beta2": 0.99, "weight_decay": 0.01, "eps": 1e-8}
    check(getattr(aten, name), *lists, lr=0.1, amsgrad=amsgrad, maximize=maximize, **options)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("nesterov", [False, True])
def test_fused_sgd(nesterov, momentum):
    lists = parameters(A, B, C if momentum else [])
    options = {"weight_decay": 0.01, "dampening": 0.0, "maximize": False, "is_first_step": False}
    check(
        aten._fused_sgd,
        *lists,
        lr=0.1,
        momentum=momentum,
        nesterov=nesterov and momentum > 0,
        **options,
    )


@pytest.mark.few_daily(3)
@pytest.mark.parametrize("step", [1.0, 2.0, 1e6])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["_fused_adam", "_fused_adamw"])
def test_the_bias_correction_of_fused_adam_is_computed_in_float64(name, dtype, step):
    ones = [torch.ones(3, dtype=dtype)]
    lists = [[x.clone() for x in ones] for _ in range(4)]
    options = {"beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 0.0, "lr": 1.0}
    options |= {"amsgrad": False, "maximize": False}
    tolerance = {"rtol": 1e-6, "atol": 1e-6} if dtype == torch.float32 else {}
    check(getattr(aten, name), *lists, [], [torch.tensor(step)], **options, **tolerance)
