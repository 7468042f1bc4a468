#include "torch_xla_lite/csrc/interpreter/recurrence.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>

#include <string_view>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/interpreter/opmath.h"
#include "torch_xla_lite/csrc/kernels/simd_loops.h"

namespace torch_xla_lite::interpreter {
namespace {

using at::Tensor;
using torch::jit::Stack;

// Contiguous, or undefined.
Tensor TensorOf(const c10::IValue& value) {
  return value.isNone() || !value.toTensor().defined() ? Tensor() : value.toTensor().contiguous();
}

Tensor Wide(const Tensor& tensor) { return tensor.defined() ? ToOpmath(tensor) : tensor; }

// What the recurrence and its gradient both take.
struct Inputs {
  // `first`: the arguments from x on.
  explicit Inputs(c10::ArrayRef<c10::IValue> first)
      : x(TensorOf(first[0])),
        h(TensorOf(first[1])),
        c(TensorOf(first[2])),
        w_hh(TensorOf(first[3])),
        b_hh(TensorOf(first[4])),
        w_hr(TensorOf(first[5])),
        valid(TensorOf(first[6])),
        cell(first[7].toStringView()),
        reverse(first[8].toBool()) {
    if (valid.defined()) valid = valid.unsqueeze(-1);
  }

  Tensor x, h, c, w_hh, b_hh, w_hr, valid;
  std::string_view cell;
  bool reverse;
};

// The arguments of the gates; those of a GRU's new state are in two parts.
Tensor GatesOf(const Inputs& in, const Tensor& x, const Tensor& hidden) {
  if (in.cell != "gru") return x + hidden;
  const int64_t split = x.size(-1) / 3 * 2;
  return at::cat({x.narrow(-1, 0, split) + hidden.narrow(-1, 0, split), x.slice(-1, split),
                  hidden.slice(-1, split)},
                 -1);
}

// Calls body(width, pointers ..) for each row of tensors, which are contiguous and of one wide
// dtype.
template <typename Body, typename... Tensors>
void ForRows(const Body& body, const Tensor& first, const Tensors&... others) {
  constexpr int64_t kGrain = 1 << 11;
  const auto run = [&]<typename T>(T) {
    const auto row_of = [](const Tensor& tensor, int64_t row) {
      return tensor.mutable_data_ptr<T>() + row * tensor.size(-1);
    };
    const int64_t width = std::max<int64_t>(first.size(-1), 1);
    at::parallel_for(0, first.numel() / width, kGrain / width + 1, [&](int64_t i, int64_t end) {
      for (; i < end; ++i) body(width, row_of(first, i), row_of(others, i)...);
    });
  };
  first.scalar_type() == at::kDouble ? run(double{}) : run(float{});
}

// The new h and c, of one step or of all.
std::pair<Tensor, Tensor> NextState(const Inputs& in, const Tensor& gates, const Tensor& h,
                                    const Tensor& c) {
  if (in.cell == "rnn_tanh") return {gates.tanh(), {}};
  if (in.cell == "rnn_relu") return {gates.relu(), {}};
  if (in.cell == "gru") {
    const std::vector<Tensor> part = gates.chunk(4, -1);
    const Tensor n = (part[2] + part[0].sigmoid() * part[3]).tanh();
    return {n + part[1].sigmoid() * (h - n), {}};
  }
  const Tensor new_h(at::detail::empty_cpu(c.sizes(), c.scalar_type()));
  const Tensor new_c(at::detail::empty_cpu(c.sizes(), c.scalar_type()));
  ForRows([](auto... x) { kernels::LstmStep(x...); }, c, gates, new_h, new_c);
  return {new_h, new_c};
}

// The state before each step, from the first one and those after each step.
Tensor StatesBefore(const Inputs& in, const Tensor& first, const Tensor& after) {
  if (!first.defined()) return {};
  const int64_t others = after.size(0) - 1;
  const Tensor start = first.unsqueeze(0);
  return Wide(in.reverse ? at::cat({after.narrow(0, 1, others), start})
                         : at::cat({start, after.narrow(0, 0, others)}));
}

// The gradients of all steps' NextState, but not of an LSTM's: of the gates, grad_h * gates,
// repeated; of the state before, grad_h * h.
std::pair<Tensor, Tensor> DerivativesOf(const Inputs& in, const Tensor& gates, const Tensor& h) {
  const auto of_sigmoid = [](const Tensor& y) { return y * (1 - y); };
  const auto of_tanh = [](const Tensor& y) { return 1 - y * y; };
  if (in.cell == "rnn_tanh") return {of_tanh(gates.tanh()), {}};
  if (in.cell == "rnn_relu") return {gates.gt(0).to(gates.scalar_type()), {}};
  if (in.cell == "lstm") return {at::empty_like(gates), {}};
  const std::vector<Tensor> part = gates.chunk(4, -1);
  const Tensor r = part[0].sigmoid(), z = part[1].sigmoid();
  const Tensor n = (part[2] + r * part[3]).tanh();
  const Tensor of_n = (1 - z) * of_tanh(n);
  return {at::cat({of_n * part[3] * of_sigmoid(r), (h - n) * of_sigmoid(z), of_n, of_n * r}, -1),
          z};
}

// The gradients of the two arguments of GatesOf.
std::pair<Tensor, Tensor> SplitGates(const Inputs& in, const Tensor& grad) {
  if (in.cell != "gru") return {grad, grad};
  const std::vector<Tensor> part = grad.chunk(4, -1);
  return {at::cat({part[0], part[1], part[2]}, -1), at::cat({part[0], part[1], part[3]}, -1)};
}

// The sum over all steps of the products of column and row.
Tensor GradOfWeight(const Tensor& column, const Tensor& row) {
  return column.flatten(0, 1).t().mm(row.flatten(0, 1));
}

}  // namespace

void Recurrence(Stack* stack) {
  const Inputs in(*stack);
  // The products are added where the gates stay, but those that are rounded to 16 bits.
  const bool adds = in.cell != "gru" && !c10::isReducedFloatingType(in.x.scalar_type());
  const Tensor weight = in.w_hh.t();
  const Tensor all = !adds ? Tensor() : in.b_hh.defined() ? in.x + in.b_hh : in.x.clone();
  Tensor h = in.h, c = in.c;
  const std::vector<Tensor> x = (adds ? all : in.x).unbind();
  std::vector<Tensor> hs(x.size()), cs(x.size()), all_gates(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t step = in.reverse ? x.size() - 1 - i : i;
    const Tensor gates = adds ? x[step].addmm_(h, weight)
                              : GatesOf(in, Wide(x[step]), Wide(at::linear(h, in.w_hh, in.b_hh)));
    auto [new_h, new_c] = NextState(in, gates, Wide(h), Wide(c));
    if (in.w_hr.defined()) new_h = at::linear(new_h, Wide(in.w_hr));
    const auto keep_ended = [&](const Tensor& next, const Tensor& before) {
      const Tensor rounded = next.to(before.scalar_type());
      return in.valid.defined() ? at::where(in.valid[step], rounded, before) : rounded;
    };
    hs[step] = h = keep_ended(new_h, h);
    if (c.defined()) cs[step] = c = keep_ended(new_c, c);
    all_gates[step] = gates;
  }
  *stack = {at::stack(hs), c.defined() ? at::stack(cs) : Tensor(),
            adds ? all : at::stack(all_gates)};
}

void RecurrenceBackward(Stack* stack) {
  const Tensor grad_hs = Wide(TensorOf((*stack)[0])), grad_cs = Wide(TensorOf((*stack)[1]));
  const Tensor gates = Wide(TensorOf((*stack)[4]));
  const Inputs in(c10::ArrayRef<c10::IValue>(*stack).slice(5));
  const Tensor h = StatesBefore(in, in.h, TensorOf((*stack)[2]));
  const Tensor c = StatesBefore(in, in.c, TensorOf((*stack)[3]));
  const Tensor w_hh = Wide(in.w_hh), w_hr = Wide(in.w_hr);
  const auto [of_gates, of_h] = DerivativesOf(in, gates, h);

  Tensor grad_h = grad_hs.new_zeros(in.h.sizes());
  Tensor grad_c = c.defined() ? grad_hs.new_zeros(in.c.sizes()) : Tensor();
  const std::vector<Tensor> grads = grad_hs.unbind(), grad_gates = of_gates.unbind();
  std::vector<Tensor> projected_grads(grads.size());
  for (size_t i = 0; i < grads.size(); ++i) {
    const size_t step = in.reverse ? i : grads.size() - 1 - i;
    grad_h.add_(grads[step]);
    if (grad_cs.defined()) grad_c.add_(grad_cs[step]);
    Tensor kept_h, kept_c;  // where the sequence has ended
    if (in.valid.defined()) {
      const auto split = [&](Tensor* grad, Tensor* kept) {
        if (!grad->defined()) return;
        *kept = grad->masked_fill(in.valid[step], 0);
        *grad = *grad - *kept;
      };
      split(&grad_h, &kept_h);
      split(&grad_c, &kept_c);
    }
    projected_grads[step] = grad_h;
    if (w_hr.defined()) grad_h = grad_h.mm(w_hr);
    if (c.defined()) {
      ForRows([](auto... x) { kernels::LstmStepGradient(x...); }, c[step], gates[step], grad_h,
              grad_c, grad_gates[step]);
    } else {
      // The derivatives become gradients where they are.
      grad_gates[step].view({grad_h.size(0), -1, grad_h.size(1)}).mul_(grad_h.unsqueeze(1));
    }
    const Tensor by_gates = SplitGates(in, grad_gates[step]).second.mm(w_hh);
    grad_h = of_h.defined() ? grad_h * of_h[step] + by_gates : by_gates;
    if (kept_h.defined()) grad_h = grad_h + kept_h;
    if (kept_c.defined()) grad_c = grad_c + kept_c;
  }
  const auto [grad_x, grad_hidden] = SplitGates(in, of_gates);
  Tensor grad_b, grad_w_hr;
  if (in.b_hh.defined()) grad_b = grad_hidden.sum({0, 1});
  if (w_hr.defined()) {
    grad_w_hr = GradOfWeight(at::stack(projected_grads), NextState(in, gates, h, c).first);
  }
  *stack = {grad_x, grad_h, grad_c, GradOfWeight(grad_hidden, h), grad_b, grad_w_hr};
}

}  // namespace torch_xla_lite::interpreter
