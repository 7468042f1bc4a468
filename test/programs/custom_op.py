"""An op of the program's own, in Python, with a gradient."""

import torch


@torch.library.custom_op("test_programs::cube", mutates_args=())
def cube(x: torch.Tensor) -> torch.Tensor:
    return x * x * x


@cube.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


cube.register_autograd(
    lambda ctx, gradient: gradient * 3 * ctx.saved_tensors[0].square(),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
)


def run(device: str, steps: int) -> list[float]:
    torch.manual_seed(0)
    x = torch.rand(10).to(device).requires_grad_()
    losses = []
    for _ in range(steps):
        loss = cube(x).sum()
        (gradient,) = torch.autograd.grad(loss, x)
        x = (x - 0.1 * gradient).detach().requires_grad_()
        losses.append(loss.item())
    return losses
