// OpSignature: a Signature with what torch wants to know of an op's results beyond their shapes.
//
//   const auto& signature = static_cast<const OpSignature&>(node.signature());
//   signature.layouts[0].strides;    // of a view's result; empty: row-major
//
// All values are dense and row-major; strides and offsets exist only so that a view's tensor shows
// those that torch promises. One writer under the record lock, then read-only.

#ifndef TORCH_XLA_LITE_CSRC_TENSOR_OP_SIGNATURE_H_
#define TORCH_XLA_LITE_CSRC_TENSOR_OP_SIGNATURE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::tensor {

struct Layout {
  std::vector<int64_t> strides;  // Empty: row-major.
  int64_t offset = 0;            // Elements behind the operand's own storage offset.
};

struct OpSignature : ir::Signature {
  using Signature::Signature;

  // How the operation behaves when it is called; decided once, when the signature is new.
  bool runs_on_cpu = false;
  std::vector<Layout> layouts;
  // For each result of the op's schema: how many outputs it is, or -1 for one that is not a list.
  std::vector<int> result_sizes;

  // The signature of writing through a view: (base, value of result `output`) -> new base. Made on
  // first use.
  const ir::Signature* WriteSignature(uint32_t output, const ir::Shape* base) const;

 private:
  mutable std::vector<std::unique_ptr<ir::Signature>> writes_;
};

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_CSRC_TENSOR_OP_SIGNATURE_H_
