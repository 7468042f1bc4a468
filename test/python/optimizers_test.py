"""Every optimizer of torch, with every setting of PyTorch's own database, trains as on the CPU."""

import copy
import re

import pytest
import torch
from torch.testing._internal.common_optimizers import OptimizerInfo, optim_db

from test.python import tiers

pytestmark = pytest.mark.nightly

CASES = [
    pytest.param(info, implementation, id=f"{info.optim_cls.__name__}-{implementation}")
    for info in optim_db
    for implementation in ("default", *info.supported_impls)
]


def _trained(info: OptimizerInfo, settings: dict, device: str) -> list[torch.Tensor]:
    """The parameters after three steps, and the optimizer's state."""
    torch.manual_seed(0)
    # Muon is for matrices only.
    shapes = [(5, 3), (4, 6)] if info.optim_cls is torch.optim.Muon else [(5, 3), (7,), ()]
    targets = [torch.randn(shape).to(device) for shape in shapes]
    params = [torch.randn(shape).to(device).requires_grad_() for shape in shapes]
    # A tensor as the learning rate stays on the CPU, unless the setting is for devices.
    on_device = settings.get("fused") or settings.get("capturable")
    settings = {
        name: value.to(device if on_device else "cpu", copy=True)
        if isinstance(value, torch.Tensor)
        else copy.copy(value)
        for name, value in settings.items()
    }
    optimizer = info.optim_cls(params, **settings)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = sum((x - target).pow(4).sum() for x, target in zip(params, targets, strict=True))
        loss.backward()
        return loss

    for _ in range(3):
        if info.step_requires_closure:
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
    states = [
        value for state in optimizer.state_dict()["state"].values() for value in state.values()
    ]
    return [x.detach().cpu() for x in [*params, *states] if isinstance(x, torch.Tensor)]


def _check(info: OptimizerInfo, implementation: str, settings: dict) -> None:
    if implementation != "default":
        settings = {**settings, implementation: True}
    try:
        wanted = _trained(info, settings, "cpu")
    except (RuntimeError, ValueError) as error:
        # Such as `differentiable`, which needs parameters that are no leaves.
        with pytest.raises(type(error), match=re.escape(str(error))):
            _trained(info, settings, "jax")
        return
    got = _trained(info, settings, "jax")
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5, msg=lambda m: f"{settings}: {m}")


@pytest.mark.few_daily(4)
@pytest.mark.parametrize(("info", "implementation"), CASES)
def test_each_setting_trains_as_on_the_cpu(info: OptimizerInfo, implementation: str):
    with tiers.as_by_default():
        for case in info.optim_inputs_func(device="cpu"):
            _check(info, implementation, case.kwargs)


@pytest.mark.few_daily(3)
@pytest.mark.parametrize(("info", "implementation"), CASES)
def test_a_compiled_step_with_a_tensor_as_learning_rate(info: OptimizerInfo, implementation: str):
    for case in info.optim_inputs_func(device="cpu"):
        if isinstance(case.kwargs.get("lr"), torch.Tensor):
            _check(info, implementation, case.kwargs)
            break


def test_averages_of_weights_have_integers_among_them():
    averages = {}
    for device in ("cpu", "jax"):
        model = torch.nn.BatchNorm1d(4).to(device)
        average = torch.optim.swa_utils.AveragedModel(model, use_buffers=True)
        for _ in range(3):
            model(torch.ones(2, 4, device=device))
            average.update_parameters(model)
        averages[device] = {name: x.cpu() for name, x in average.state_dict().items()}
    torch.testing.assert_close(averages["jax"], averages["cpu"], rtol=0, atol=0)
