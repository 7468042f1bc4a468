#include "torch_xla_lite/csrc/tensor/op_signature.h"

#include <algorithm>

namespace torch_xla_lite::tensor {

const ir::Signature* OpSignature::WriteSignature(uint32_t output, const ir::Shape* base) const {
  if (writes_.size() <= output) writes_.resize(output + 1);
  ir::Ref<ir::Signature>& write = writes_[output];
  if (!write) {
    write = ir::MakeRef<ir::Signature>(op, words, std::vector<const ir::Shape*>{base});
    write->written = output;
    write->KeepShapesOf(*this);
  }
  return write.get();
}

bool OpSignature::IsReferenced() const {
  const auto is_used = [](const ir::Ref<ir::Signature>& write) {
    return write && write->refs() > 1;
  };
  return refs() > 1 || std::ranges::any_of(writes_, is_used);
}

}  // namespace torch_xla_lite::tensor
