// View steps: the ops that compute a view's value from its base.
//
// A ViewStep is one view op with its runtime scalars (the i of x[i]), linked to the step before it.
// The chain leads from the view back to the base. Creating a view records nothing; reading a view
// records its steps on the base's current value, writing through it records their inverses.
//
//   ir::Value v = ReadThrough(step.get(), base);             // step3(step2(step1(base)))
//   ir::Value b = WriteThrough(step.get(), base, new_v);     // the base with that part replaced
//
// Immutable after construction, so views and threads can share it.

#ifndef TORCH_XLA_LITE_CSRC_TENSOR_VIEW_STEP_H_
#define TORCH_XLA_LITE_CSRC_TENSOR_VIEW_STEP_H_

#include <c10/util/intrusive_ptr.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/node.h"
#include "torch_xla_lite/csrc/tensor/op_signature.h"

namespace torch_xla_lite::tensor {

struct ViewStep : c10::intrusive_ptr_target {
  using Scalars = std::vector<uint64_t>;

  ViewStep(c10::intrusive_ptr<ViewStep> previous, const OpSignature* signature, uint32_t output,
           Scalars scalars)
      : previous(std::move(previous)),
        signature(ir::Ref<const OpSignature>::Share(signature)),
        output(output),
        scalars(std::move(scalars)),
        depth(this->previous == nullptr ? 1 : this->previous->depth + 1) {}

  // Without recursion: a chain may be a million steps long.
  ~ViewStep() override;

  c10::intrusive_ptr<ViewStep> previous;  // Null: the step starts at the base.
  const ir::Ref<const OpSignature> signature;
  const uint32_t output;
  const Scalars scalars;
  const uint32_t depth;  // The number of steps.
};

// The steps of `first`, followed by those of `last`, which start at the result of `first`.
c10::intrusive_ptr<ViewStep> Concatenate(c10::intrusive_ptr<ViewStep> first, const ViewStep* last);

// Whether the steps show the base conjugated or negated. Other devices mark such views by a bit.
bool IsConjugated(const ViewStep* last);

ir::Value ReadThrough(const ViewStep* step, ir::Value base);
ir::Value WriteThrough(const ViewStep* step, ir::Value base, ir::Value value);

}  // namespace torch_xla_lite::tensor

#endif  // TORCH_XLA_LITE_CSRC_TENSOR_VIEW_STEP_H_
