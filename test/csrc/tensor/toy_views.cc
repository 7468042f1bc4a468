#include "test/csrc/tensor/toy_views.h"

#include <map>
#include <memory>
#include <utility>

#include "torch_xla_lite/csrc/runtime/runtime.h"
#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

namespace torch_xla_lite::tensor {

using runtime::Runtime;

const OpSignature* ViewSignature(const std::string& op, size_t size) {
  static auto* signatures = new std::map<std::pair<std::string, size_t>, const OpSignature*>;
  const OpSignature*& signature = (*signatures)[{op, size}];
  if (signature == nullptr) {
    const ir::Shape* operand = ir::toy::Vector(size);
    const std::vector<uint64_t> words{reinterpret_cast<uint64_t>(operand)};
    auto* const made = new OpSignature(op, words, ir::toy::Outputs(op, {&operand, 1}));
    made->Keep(operand);
    signature = made;
  }
  return signature;
}

at::TensorBase TensorOf(ir::toy::Data data) {
  const runtime::RecordScope scope;
  return MakeTensor(ir::toy::Leaf(std::move(data)));
}

at::TensorBase ViewOf(const at::TensorBase& source, const std::string& op,
                      std::vector<uint64_t> scalars, uint32_t output) {
  const XTensorImpl& impl = *XTensorImpl::From(source);
  const OpSignature* signature = ViewSignature(op, static_cast<size_t>(source.numel()));
  const runtime::RecordScope scope;
  auto step = c10::make_intrusive<ViewStep>(impl.step(), signature, output, std::move(scalars));
  return at::detail::make_tensor_base<XTensorImpl>(
      impl, std::move(step), signature->outputs[output], Layout{}, source.storage_offset());
}

ir::Value ValueOf(const at::TensorBase& tensor) {
  const runtime::RecordScope scope;
  return XTensorImpl::From(tensor)->Read();
}

void SetValue(const at::TensorBase& tensor, ir::Value value) {
  ir::Value replaced;
  const runtime::RecordScope scope;
  replaced = XTensorImpl::From(tensor)->Write(std::move(value));
}

ir::toy::Data Read(const at::TensorBase& tensor) {
  const auto buffer = Runtime::Get().Materialize(ValueOf(tensor));
  return static_cast<const ir::toy::HostBuffer&>(*buffer).data;
}

void Write(const at::TensorBase& tensor, ir::toy::Data data) {
  SetValue(tensor, ir::toy::Leaf(std::move(data)));
}

}  // namespace torch_xla_lite::tensor
