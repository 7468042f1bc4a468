// Merges steps of views (tensor/view_step.h) as they are recorded, as strides on the CPU are
// merged.
//
// In a long chain, a view of a view is one step if one op can make it of the base: a transpose of a
// transpose, a reshape of a reshape, a slice of a slice. A step that undoes the last one takes it
// away. So a loop that makes view after view is read, and written through, in a few steps.
//
//   step = MergedStep(source.step(), signature, output, scalars);
//
// What two steps are together is found out once for each pair of signatures.

#ifndef TORCH_XLA_LITE_CSRC_RECORD_MERGED_VIEWS_H_
#define TORCH_XLA_LITE_CSRC_RECORD_MERGED_VIEWS_H_

#include <c10/util/intrusive_ptr.h>

#include <cstdint>

#include "torch_xla_lite/csrc/ir/record_lock.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/tensor/op_signature.h"
#include "torch_xla_lite/csrc/tensor/view_step.h"

namespace torch_xla_lite::record {

// The last step of a view of a view: `previous` leads to its operand. Null if it is the base.
c10::intrusive_ptr<tensor::ViewStep> MergedStep(c10::intrusive_ptr<tensor::ViewStep> previous,
                                                const tensor::OpSignature& signature,
                                                uint32_t output, tensor::ViewStep::Scalars scalars)
    LITE_REQUIRES(ir::record_lock);

}  // namespace torch_xla_lite::record

#endif  // TORCH_XLA_LITE_CSRC_RECORD_MERGED_VIEWS_H_
