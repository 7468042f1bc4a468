// The op of a constraint: the same values, divided among the devices of a mesh in a given way.
//
//   torch.ops.torch_xla_lite.constrain(x, placements.constraint(("data", None)))
//
// A program calls it for each layer. Python's autograd functions take 60 us a call, and the first
// of them imports sympy.

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <string>

namespace torch_xla_lite::kernels_of_torch {
namespace {

at::Tensor Constrained(const at::Tensor& self, c10::string_view spec) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("torch_xla_lite::constrain", "")
                             .typed<at::Tensor(const at::Tensor&, c10::string_view)>();
  return op.call(self, spec);
}

class Constraint : public torch::autograd::Function<Constraint> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& self,
                            c10::string_view spec) {
    context->saved_data["spec"] = std::string(spec);
    const at::AutoDispatchBelowADInplaceOrView below;
    return Constrained(self, spec);
  }

  // The gradient is divided in the same way.
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    return {Constrained(gradients[0], context->saved_data["spec"].toStringRef()), at::Tensor()};
  }
};

TORCH_LIBRARY_FRAGMENT(torch_xla_lite, library) {
  library.def("constrain(Tensor self, str spec) -> Tensor");
}

TORCH_LIBRARY_IMPL(torch_xla_lite, Meta, library) {
  library.impl("constrain", [](const at::Tensor& self, c10::string_view) {
    return at::Tensor(at::detail::empty_symint_meta(self.sym_sizes(), self.scalar_type(), {},
                                                    c10::kMeta, {}, {}));
  });
}

TORCH_LIBRARY_IMPL(torch_xla_lite, Autograd, library) {
  library.impl("constrain", [](const at::Tensor& self, c10::string_view spec) {
    return Constraint::apply(self, spec);
  });
}

}  // namespace
}  // namespace torch_xla_lite::kernels_of_torch
