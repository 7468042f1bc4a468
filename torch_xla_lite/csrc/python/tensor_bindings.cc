#include "torch_xla_lite/csrc/python/tensor_bindings.h"

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/dispatch/transfer.h"
#include "torch_xla_lite/csrc/python/executor.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

using tensor::XTensorImpl;

py::object ToJax(const at::Tensor& tensor) {
  TORCH_CHECK_TYPE(XTensorImpl::From(tensor) != nullptr, "expected a tensor on jax, found one on ",
                   tensor.device(), ".\nMove it first:  tensor.to('jax')");
  ir::Ref<ir::Buffer> buffer;
  {
    const py::gil_scoped_release no_gil;
    buffer = dispatch::Materialize(tensor);
  }
  const auto& executor = static_cast<const PyExecutor&>(runtime::Runtime::Get().executor());
  return py::reinterpret_borrow<py::object>(executor.ArrayOf(buffer.get()));
}

at::Tensor FromJax(py::object array) {
  const auto& executor = static_cast<const PyExecutor&>(runtime::Runtime::Get().executor());
  const auto dims = array.attr("shape").cast<std::vector<int64_t>>();
  const auto dtype = static_cast<c10::ScalarType>(executor.TorchDtype(array.attr("dtype")));
  const auto shape = tensor::ShapeOf(dtype, dims, "from_jax");
  auto buffer = ir::Ref<ir::Buffer>::Take(new PyBuffer(std::move(array), shape.get()));
  ir::Value leaf{ir::Node::Leaf(shape.get(), std::move(buffer)), 0};
  const runtime::RecordScope scope;
  return at::Tensor(tensor::MakeTensor(std::move(leaf)));
}

bool IsPending(const at::Tensor& tensor) {
  const runtime::RecordScope scope;
  return XTensorImpl::From(tensor)->Read().buffer() == nullptr;
}

// torch's C++ refuses: the storage has an address, but no memory is there.
uintptr_t DataPtr(const at::Tensor& tensor) {
  const XTensorImpl* impl = XTensorImpl::From(tensor);
  // Fake tensors and wrappers.
  if (impl == nullptr) return reinterpret_cast<uintptr_t>(tensor.data_ptr());
  if (tensor.numel() == 0) return 0;
  return reinterpret_cast<uintptr_t>(impl->alias().data()) +
         tensor.storage_offset() * tensor.element_size();
}

// Whether a tensor shows its storage conjugated or negated. Other devices mark such views by a bit;
// here they are views whose steps say so.
bool IsConjugateView(const at::Tensor& tensor) {
  XTensorImpl* impl = XTensorImpl::From(tensor);
  if (impl == nullptr) return false;
  const runtime::RecordScope scope;
  const c10::intrusive_ptr<tensor::ViewStep> last = impl->step();
  for (const tensor::ViewStep* step = last.get(); step != nullptr; step = step->previous.get()) {
    if (step->signature->op == "aten::_conj" || step->signature->op == "aten::_neg_view")
      return true;
  }
  return false;
}

}  // namespace

void BindTensors(py::module_& module) {
  // Wrapped like torch's own functions: a c10::TypeError becomes a TypeError without a C++ stack
  // trace.
  module.def("to_jax", torch::wrap_pybind_function(&ToJax), py::arg("tensor"));
  module.def("is_pending", torch::wrap_pybind_function(&IsPending), py::arg("tensor"));
  module.def("data_ptr", torch::wrap_pybind_function(&DataPtr), py::arg("tensor"));
  module.def("is_conjugate_view", &IsConjugateView, py::arg("tensor"));
  module.def(
      "claim_storage", [](bool claims) { XTensorImpl::claims_storage = claims; },
      py::arg("claims"));
  module.def("from_jax", torch::wrap_pybind_function(&FromJax), py::arg("array"));
}

}  // namespace torch_xla_lite::python
