#include "torch_xla_lite/csrc/tensor/op_signature.h"

#include <gtest/gtest.h>

#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "torch_xla_lite/csrc/ir/shape.h"

namespace torch_xla_lite::tensor {
namespace {

using ir::toy::Vector;

ir::Ref<const OpSignature> NewHalves() {
  return ir::MakeRef<const OpSignature>("aten::split.Tensor", std::vector<uint64_t>{7, 8},
                                        std::vector{Vector(2), Vector(2)});
}

TEST(OpSignature, AWriteHasTheWordsOfItsViewAndGivesABase) {
  const auto halves = NewHalves();
  const ir::Signature* write = halves->WriteSignature(1, Vector(4));
  EXPECT_NE(write->hash(), halves->WriteSignature(0, Vector(4))->hash());
  EXPECT_EQ(write->words, halves->words);
  EXPECT_EQ(write->outputs, std::vector<const ir::Shape*>{Vector(4)});
}

// A program may write through a view and never read it.
TEST(OpSignature, WhoRefersToAWriteRefersToItsView) {
  const auto halves = NewHalves();
  EXPECT_FALSE(halves->IsReferenced());
  const auto write = ir::Ref<const ir::Signature>::Share(halves->WriteSignature(1, Vector(4)));
  EXPECT_TRUE(halves->IsReferenced());
}

}  // namespace
}  // namespace torch_xla_lite::tensor
