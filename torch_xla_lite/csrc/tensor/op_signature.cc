#include "torch_xla_lite/csrc/tensor/op_signature.h"

namespace torch_xla_lite::tensor {

const ir::Signature* OpSignature::WriteSignature(uint32_t output, const ir::Shape* base) const {
  if (writes_.size() <= output) writes_.resize(output + 1);
  auto& write = writes_[output];
  if (write == nullptr) {
    // The name says which result is written; the words are those of the view.
    write = std::make_unique<ir::Signature>("write:" + std::to_string(output) + ":" + op, words,
                                            std::vector<const ir::Shape*>{base});
  }
  return write.get();
}

}  // namespace torch_xla_lite::tensor
