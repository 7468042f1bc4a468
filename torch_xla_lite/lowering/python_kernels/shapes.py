"""Meta kernels for aten ops that have none in torch: they infer shapes and dtypes of results.

The recorder infers the shapes of an op's results by running it on meta tensors. Without a meta
kernel, an op would run on the CPU immediately, even if it has a lowering.
"""

from collections.abc import Callable

import torch

from torch_xla_lite.lowering.base.untraced import Library

_LIBRARY = Library("aten", "IMPL", "Meta")

Tensor = torch.Tensor


def meta(name: str) -> Callable[[Callable], Callable]:
    """Registers the decorated function as the meta kernel of an aten op, unless it has one."""

    def register(fn: Callable) -> Callable:
        if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "Meta"):
            _LIBRARY.impl(name, fn)
        return fn

    return register


def fused_lstm_cell(
    input_gates: Tensor, hidden_gates: Tensor, cx: Tensor, *biases: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    return cx.new_empty(cx.shape), cx.new_empty(cx.shape), input_gates.new_empty(input_gates.shape)


# torch's own raises an AttributeError for a cell without biases.
_LIBRARY.impl("_thnn_fused_lstm_cell", fused_lstm_cell, allow_override=True)


def multilabel_margin_loss(self: Tensor, target: Tensor, reduction: int) -> tuple[Tensor, Tensor]:
    loss, is_target = torch._decomp.decompositions.multilabel_margin_loss_forward(
        self, target, reduction
    )
    return loss if self.dim() > 1 else loss.new_empty(()), is_target


# torch's own gives the loss of one row the size [1].
_LIBRARY.impl("multilabel_margin_loss_forward", multilabel_margin_loss, allow_override=True)


@meta("_thnn_fused_gru_cell")
def fused_gru_cell(
    input_gates: Tensor, hidden_gates: Tensor, hx: Tensor, *biases: Tensor | None
) -> tuple[Tensor, Tensor]:
    return hx.new_empty(hx.shape), hx.new_empty((hx.shape[0], hx.shape[1] * 5))


@meta("_thnn_fused_gru_cell_backward")
def fused_gru_cell_backward(
    grad_hy: Tensor, workspace: Tensor, has_bias: bool
) -> tuple[Tensor | None, ...]:
    batch, width = grad_hy.shape
    gates = [grad_hy.new_empty((batch, 3 * width)) for _ in range(2)]
    biases = [grad_hy.new_empty((3 * width,)) if has_bias else None for _ in range(2)]
    return *gates, grad_hy.new_empty((batch, width)), *biases


@meta("_fused_adagrad_")
@meta("_fused_adagrad_.tensor_lr")
@meta("_fused_sgd_")
@meta("_fused_sgd_.tensor_lr")
def fused_step(*lists: list[Tensor], **settings: object) -> None:
    """Writes to its arguments and returns nothing."""


@meta("_masked_softmax")
def masked_softmax(
    self: Tensor, mask: Tensor, dim: int | None = None, mask_type: int | None = None
) -> Tensor:
    return self.new_empty(self.shape)


@meta("_masked_softmax_backward")
def masked_softmax_backward(
    grad_output: Tensor, output: Tensor, mask: Tensor, dim: int | None = None
) -> Tensor:
    return output.new_empty(output.shape)


@meta("_transform_bias_rescale_qkv")
def transform_bias_rescale_qkv(qkv: Tensor, qkv_bias: Tensor, num_heads: int) -> tuple[Tensor, ...]:
    batch, length, width = qkv.shape
    shape = (batch, num_heads, length, width // 3 // num_heads)
    return tuple(qkv.new_empty(shape) for _ in range(3))


@meta("multi_margin_loss_backward")
def multi_margin_loss_backward(grad_output: Tensor, self: Tensor, *args: object) -> Tensor:
    return self.new_empty(self.shape)


@meta("_embedding_bag_backward")
@meta("_embedding_bag_dense_backward")
def embedding_bag_backward(
    grad: Tensor,
    indices: Tensor,
    offsets_or_bags: Tensor,
    bags_or_sizes: Tensor,
    sizes_or_maxima: Tensor,
    maxima_or_rows: Tensor | int,
    rows_or_flag: int | bool,
    *args: object,
) -> Tensor:
    # The first has the offsets as an additional argument.
    rows = maxima_or_rows if isinstance(maxima_or_rows, int) else rows_or_flag
    return grad.new_empty((rows, grad.shape[1]))


@meta("_embedding_bag_per_sample_weights_backward")
def embedding_bag_weights_backward(
    grad: Tensor, weight: Tensor, indices: Tensor, *args: object
) -> Tensor:
    return grad.new_empty((indices.shape[0],))


@meta("binomial")
def binomial(count: Tensor, prob: Tensor, generator: object = None) -> Tensor:
    return count.new_empty(count.shape)


@meta("_sample_dirichlet")
def sample_dirichlet(self: Tensor, generator: object = None) -> Tensor:
    return self.new_empty(self.shape)
