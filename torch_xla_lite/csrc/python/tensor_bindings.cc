#include "torch_xla_lite/csrc/python/tensor_bindings.h"

#include <pybind11/stl.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/aten/aten_call.h"
#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/python/buffer.h"
#include "torch_xla_lite/csrc/python/executor.h"
#include "torch_xla_lite/csrc/record/transfer.h"
#include "torch_xla_lite/csrc/runtime/executor.h"
#include "torch_xla_lite/csrc/runtime/live_values.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

using tensor::XTensorImpl;

XTensorImpl& OnJax(const at::Tensor& tensor) {
  XTensorImpl* const impl = XTensorImpl::From(tensor);
  TORCH_CHECK_TYPE(impl != nullptr, "expected a tensor on jax, found one on ", tensor.device(),
                   ".\nMove it first:  tensor.to('jax')");
  return *impl;
}

py::object ToJax(const at::Tensor& tensor) {
  OnJax(tensor);
  ir::Ref<ir::Buffer> buffer;
  {
    const py::gil_scoped_release no_gil;
    buffer = record::Materialize(tensor);
  }
  return py::reinterpret_borrow<py::object>(PyExecutor::Get().arrays().Of(buffer.get()));
}

// `placement` says where the data of the array is.
at::Tensor FromJax(py::object array, ir::Placement placement) {
  const auto dims = array.attr("shape").cast<std::vector<int64_t>>();
  const auto dtype =
      static_cast<c10::ScalarType>(PyExecutor::Get().arrays().TorchDtype(array.attr("dtype")));
  const auto shape = tensor::ShapeOf(dtype, dims, "from_jax");
  auto buffer = ir::Ref<ir::Buffer>::Take(new PyBuffer(std::move(array), shape.get(), placement));
  ir::Value leaf{ir::Node::Leaf(shape.get(), std::move(buffer)), 0};
  const runtime::RecordScope scope;
  return at::Tensor(tensor::MakeTensor(std::move(leaf)));
}

// Moves the data of a tensor's storage, and so of all its views, to another place.
void Place(const at::Tensor& tensor, ir::Placement placement) {
  XTensorImpl& impl = OnJax(tensor);
  ir::Value value;
  {
    const runtime::RecordScope scope;
    TORCH_CHECK_VALUE(impl.step() == nullptr,
                      "a view is where the tensor is that it shows.\nPlace that one, or a copy:  "
                      "x.clone()");
    value = impl.alias().value();
  }
  runtime::Runtime& runtime = runtime::Runtime::Get();
  const py::gil_scoped_release no_gil;
  auto placed = runtime.executor().Placed(value.shape(), runtime.Materialize(value), placement);
  ir::Value leaf{ir::Node::Leaf(value.shape(), std::move(placed)), 0};
  const runtime::RecordScope scope;
  impl.alias().SetValue(std::move(leaf));
}

// Says where the data of a tensor is to be that is pending, and stays. A view has the place of its
// base, which has other dimensions.
void KeepAt(const at::Tensor& tensor, ir::Placement placement) {
  XTensorImpl& impl = OnJax(tensor);
  const runtime::RecordScope scope;
  if (impl.step() == nullptr && impl.alias().value().buffer() == nullptr) {
    impl.alias().KeepAt(placement);
  }
}

// Where the data of a tensor is; if it is pending, where its storage was before. Computes nothing.
std::optional<ir::Placement> PlacementOf(const at::Tensor& tensor) {
  const XTensorImpl& impl = OnJax(tensor);
  const runtime::RecordScope scope;
  const ir::Placement placement = impl.alias().placement();
  if (placement == ir::kAnywhere) return std::nullopt;
  return placement;
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

// Fake tensors and wrappers have none.
uint32_t StampOf(const at::Tensor& tensor) {
  const XTensorImpl* impl = XTensorImpl::From(tensor);
  return impl == nullptr ? 0 : impl->alias().stamp();
}

void SetStampOf(const at::Tensor& tensor, uint32_t number) {
  OnJax(tensor).alias().set_stamp(number);
}

bool IsConjugateView(const at::Tensor& tensor) {
  const XTensorImpl* impl = XTensorImpl::From(tensor);
  if (impl == nullptr) return false;
  const runtime::RecordScope scope;
  return tensor::IsConjugated(impl->step().get());
}

std::optional<at::Tensor> LastPending() {
  const runtime::RecordScope scope;
  const runtime::LiveValue* const last = runtime::LastPending();
  if (last == nullptr || !last->IsOfThisThread()) return {};
  return at::Tensor(tensor::MakeTensor(last->value()));
}

// The beginning of torch's THPVariable, whose header would be one more to compile for all files
// that use Python.
struct PythonTensor {
  PyObject_HEAD;
  at::Tensor cdata;
};

at::Tensor& CppTensorOf(const py::object& object, const at::Tensor& tensor) {
  at::Tensor& cdata = reinterpret_cast<PythonTensor*>(object.ptr())->cdata;
  TORCH_INTERNAL_ASSERT(cdata.is_same(tensor), "this torch has another THPVariable");
  return cdata;
}

// Exchanges what two Python objects are in C++: data, layout, autograd. torch._C._swap_tensor_impl
// does the same, and refuses if C++ has a weak reference, as torch's profiler has to all tensors
// that it saw. Hooks and attributes, which are of the Python objects, stay.
void SwapTensors(const py::object& a, const py::object& b) {
  // With a second reference, each C++ object owns one to its Python object: it is exchanged, too.
  const auto of_a = a.cast<at::Tensor>();
  const auto of_b = b.cast<at::Tensor>();
  std::swap(CppTensorOf(a, of_a), CppTensorOf(b, of_b));
  of_a.unsafeGetTensorImpl()->pyobj_slot()->store_pyobj(b.ptr());
  of_b.unsafeGetTensorImpl()->pyobj_slot()->store_pyobj(a.ptr());
}

// The kernel of a host callback (lowering/base/host.py), as a function of Python.
py::cpp_function AtenCallOf(const std::string& op, const std::vector<uint64_t>& words,
                            const std::string& defined) {
  const auto call = std::make_shared<aten::AtenCall>(op, words, defined);
  return py::cpp_function(torch::wrap_pybind_function(
      [call](const std::vector<at::Tensor>& operands, const std::vector<at::Tensor>& scalars,
             const std::vector<at::Tensor>& outputs) {
        std::vector<ops::ScalarView> views;
        for (const at::Tensor& scalar : scalars) {
          views.push_back({scalar.scalar_type(), scalar.const_data_ptr()});
        }
        const py::gil_scoped_release no_gil;
        call->Run(operands, views, outputs);
      }));
}

}  // namespace

void BindTensors(py::module_& module) {
  // Wrapped like torch's own functions: a c10::TypeError becomes a TypeError without a C++ stack
  // trace.
  module.def("to_jax", torch::wrap_pybind_function(&ToJax), py::arg("tensor"));
  module.def("is_pending", torch::wrap_pybind_function(&IsPending), py::arg("tensor"));
  module.def("data_ptr", torch::wrap_pybind_function(&DataPtr), py::arg("tensor"));
  module.def("stamp_new", &tensor::Alias::StampNew, py::arg("number"));
  module.def("stamp_of", torch::wrap_pybind_function(&StampOf), py::arg("tensor"));
  module.def("set_stamp_of", torch::wrap_pybind_function(&SetStampOf), py::arg("tensor"),
             py::arg("number"));
  module.def("is_conjugate_view", &IsConjugateView, py::arg("tensor"));
  module.def("last_pending", &LastPending);
  module.def(
      "claim_storage", [](bool claims) { XTensorImpl::claims_storage = claims; },
      py::arg("claims"));
  module.def("claims_storage", [] { return XTensorImpl::claims_storage; });
  module.def("from_jax", torch::wrap_pybind_function(&FromJax), py::arg("array"),
             py::arg("placement") = ir::kOneDevice);
  module.def("place", torch::wrap_pybind_function(&Place), py::arg("tensor"), py::arg("placement"));
  module.def("keep_at", torch::wrap_pybind_function(&KeepAt), py::arg("tensor"),
             py::arg("placement"));
  module.def("placement_of", torch::wrap_pybind_function(&PlacementOf), py::arg("tensor"));
  module.def("swap_tensors", torch::wrap_pybind_function(&SwapTensors), py::arg("a"), py::arg("b"));
  module.def("aten_call", torch::wrap_pybind_function(&AtenCallOf), py::arg("op"), py::arg("words"),
             py::arg("defined"));
}

}  // namespace torch_xla_lite::python
