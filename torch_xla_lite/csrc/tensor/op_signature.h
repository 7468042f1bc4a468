// OpSignature: a Signature with the properties of an op's results that only torch needs.
//
//   const auto& signature = static_cast<const OpSignature&>(node.signature());
//   signature.layouts[0].strides;    // of a view's result; empty: row-major
//
// All values are dense and row-major; strides and offsets exist only so that a view's tensor
// reports those that torch specifies. Written once, under the record lock, then read-only.

#ifndef TORCH_XLA_LITE_CSRC_TENSOR_OP_SIGNATURE_H_
#define TORCH_XLA_LITE_CSRC_TENSOR_OP_SIGNATURE_H_

#include <cstdint>
#include <vector>

#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::tensor {

struct Layout {
  std::vector<int64_t> strides;  // Empty: row-major.
  int64_t offset = 0;            // In elements, relative to the operand's storage offset.
};

struct OpSignature : ir::Signature {
  using Signature::Signature;

  // Whether calls run on the CPU; determined when the signature is created.
  bool runs_on_cpu = false;
  // Whether calls are recorded as the functional form, and as a copy of its result to the argument
  // that is written, which has another dtype.
  bool converts = false;
  std::vector<Layout> layouts;
  // For each result in the op's schema: the length of the list, or -1 if it is not a list.
  std::vector<int> result_sizes;

  // The signature of writing through a view: (base, value of result `output`) -> new base.
  // Created on first use.
  const ir::Signature* WriteSignature(uint32_t output, const ir::Shape* base) const;

  // Or to one of its writes.
  bool IsReferenced() const override;

 private:
  mutable std::vector<ir::Ref<ir::Signature>> writes_;
};

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_CSRC_TENSOR_OP_SIGNATURE_H_
