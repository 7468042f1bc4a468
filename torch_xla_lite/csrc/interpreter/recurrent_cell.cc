#include "torch_xla_lite/csrc/interpreter/recurrent_cell.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>

#include <vector>

#include "torch_xla_lite/csrc/interpreter/opmath.h"

namespace torch_xla_lite::interpreter {
namespace {

using at::Tensor;
using torch::jit::Stack;

bool IsGiven(const c10::IValue& value) { return !value.isNone() && value.toTensor().defined(); }

Tensor Wide(const c10::IValue& value) { return ToOpmath(value.toTensor()); }

Tensor WithBias(const c10::IValue& gates, const c10::IValue& bias) {
  return IsGiven(bias) ? Wide(gates) + Wide(bias) : Wide(gates);
}

Tensor OfSigmoid(const Tensor& y) { return y * (1 - y); }

Tensor OfTanh(const Tensor& y) { return 1 - y * y; }

}  // namespace

void LstmCell(Stack* stack) {
  const Stack& in = *stack;  // input_gates, hidden_gates, cx, input_bias, hidden_bias
  const Tensor gates = WithBias(in[0], in[3]) + WithBias(in[1], in[4]);
  const std::vector<Tensor> part = gates.chunk(4, 1);
  const Tensor i = part[0].sigmoid(), f = part[1].sigmoid();
  const Tensor g = part[2].tanh(), o = part[3].sigmoid();
  const Tensor cy = f * Wide(in[2]) + i * g;
  *stack = {o * cy.tanh(), cy, at::cat({i, f, g, o}, 1)};
}

void LstmCellBackward(Stack* stack) {
  const Stack& in = *stack;  // grad_hy, grad_cy, cx, cy, workspace, has_bias
  const std::vector<Tensor> part = Wide(in[4]).chunk(4, 1);
  const Tensor &i = part[0], &f = part[1], &g = part[2], &o = part[3];
  const Tensor squashed = Wide(in[3]).tanh();
  const Tensor grad_h = IsGiven(in[0]) ? Wide(in[0]) : squashed.new_zeros(squashed.sizes());
  Tensor grad_c = grad_h * o * OfTanh(squashed);
  if (IsGiven(in[1])) grad_c = grad_c + Wide(in[1]);
  const Tensor gates = at::cat({grad_c * g * OfSigmoid(i), grad_c * Wide(in[2]) * OfSigmoid(f),
                                grad_c * i * OfTanh(g), grad_h * squashed * OfSigmoid(o)},
                               1);
  const Tensor bias = in[5].toBool() ? gates.sum(0) : Tensor();
  *stack = {gates, grad_c * f, bias};
}

void GruCell(Stack* stack) {
  const Stack& in = *stack;  // input_gates, hidden_gates, hx, input_bias, hidden_bias
  const std::vector<Tensor> input = WithBias(in[0], in[3]).chunk(3, 1);
  const std::vector<Tensor> hidden = WithBias(in[1], in[4]).chunk(3, 1);
  const Tensor r = (input[0] + hidden[0]).sigmoid(), z = (input[1] + hidden[1]).sigmoid();
  const Tensor n = (input[2] + r * hidden[2]).tanh();
  const Tensor h = Wide(in[2]);
  *stack = {n + z * (h - n), at::cat({r, z, n, h, hidden[2]}, 1)};
}

void GruCellBackward(Stack* stack) {
  const Stack& in = *stack;  // grad_hy, workspace, has_bias
  const Tensor grad = Wide(in[0]);
  const std::vector<Tensor> part = Wide(in[1]).chunk(5, 1);
  const Tensor &r = part[0], &z = part[1], &n = part[2], &h = part[3], &from_h = part[4];
  const Tensor grad_n = grad * (1 - z) * OfTanh(n);
  const Tensor grad_z = grad * (h - n) * OfSigmoid(z);
  const Tensor grad_r = grad_n * from_h * OfSigmoid(r);
  const Tensor to_input = at::cat({grad_r, grad_z, grad_n}, 1);
  const Tensor to_hidden = at::cat({grad_r, grad_z, grad_n * r}, 1);
  Tensor input_bias, hidden_bias;
  if (in[2].toBool()) {
    input_bias = to_input.sum(0);
    hidden_bias = to_hidden.sum(0);
  }
  *stack = {to_input, to_hidden, grad * z, input_bias, hidden_bias};
}

}  // namespace torch_xla_lite::interpreter
