#include "torch_xla_lite/csrc/tensor/tensor_impl.h"

#include <ATen/EmptyTensor.h>
#include <gtest/gtest.h>

#include <vector>

#include "test/csrc/ir/toy_ops.h"
#include "test/csrc/runtime/memory_executor.h"
#include "test/csrc/tensor/toy_views.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace torch_xla_lite::tensor {
namespace {

using at::TensorBase;
using ir::toy::Data;
using runtime::Runtime;

class XTensorImplTest : public testing::Test {
 protected:
  XTensorImplTest() {
    Runtime::Get().SetExecutor(&executor);
    Runtime::Get().ClearCache();
    Runtime::Get().counters().compiles = 0;
  }

  runtime::MemoryExecutor executor;
};

TensorBase CpuTensor() { return at::detail::empty_cpu({2}, at::kLong); }

void Become(const TensorBase& tensor, const TensorBase& view) {
  c10::Storage before;
  const runtime::RecordScope scope;
  before = XTensorImpl::From(tensor)->BecomeViewOf(*XTensorImpl::From(view));
}

// Adds a number in place.
void AddInPlace(const TensorBase& tensor, uint64_t number) {
  SetValue(tensor, ir::toy::Call("plus", {ValueOf(tensor)}, {number}));
}

TEST_F(XTensorImplTest, ATensorOfAnotherKindIsNotOurs) {
  EXPECT_EQ(XTensorImpl::From(CpuTensor()), nullptr);
  EXPECT_EQ(XTensorImpl::From(TensorBase()), nullptr);
}

TEST_F(XTensorImplTest, AShallowCopySharesMemoryButNotItsVersion) {
  const TensorBase x = TensorOf({1, 2});
  const TensorBase reversed = ViewOf(x, "reversed");
  const TensorBase copy(
      reversed.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(7), true));
  EXPECT_EQ(copy.unsafeGetTensorImpl()->version_counter().current_version(), 7u);
  Write(copy, {5, 6});
  EXPECT_EQ(Read(reversed), (Data{5, 6}));
  EXPECT_EQ(Read(x), (Data{6, 5}));
}

TEST_F(XTensorImplTest, AViewAndItsShallowCopyShowTheStridesThatTorchPromises) {
  const TensorBase x = TensorOf({1, 2});
  const TensorBase view = at::detail::make_tensor_base<XTensorImpl>(
      *XTensorImpl::From(x), nullptr, ir::Shape::Of(ir::toy::kInt64, {2, 2}).get(),
      Layout{{0, 1}, 0}, /*storage_offset=*/1);
  const TensorBase copy(
      view.unsafeGetTensorImpl()->shallow_copy_and_detach(c10::VariableVersion(0), true));
  for (const TensorBase& tensor : {view, copy}) {
    EXPECT_EQ(tensor.strides(), at::IntArrayRef({0, 1}));
    EXPECT_EQ(tensor.storage_offset(), 1);
    EXPECT_FALSE(XTensorImpl::From(tensor)->is_row_major());
  }
}

TEST_F(XTensorImplTest, TheDataOfACpuTensorCannotBeTakenOver) {
  const TensorBase x = TensorOf({1, 2});
  EXPECT_THROW(x.unsafeGetTensorImpl()->shallow_copy_from(CpuTensor().getIntrusivePtr()),
               c10::Error);
}

TEST_F(XTensorImplTest, BecomingAViewForgetsWhatWasReadBefore) {
  const TensorBase x = TensorOf({1, 2});
  const TensorBase view = ViewOf(x, "reversed");
  EXPECT_EQ(Read(view), (Data{2, 1}));
  const TensorBase y = TensorOf({5, 6});
  Become(view, ViewOf(y, "reversed"));
  EXPECT_EQ(Read(view), (Data{6, 5}));
}

// Otherwise each step of a training loop would recompute all earlier steps.
TEST_F(XTensorImplTest, WritingThroughAViewInALoopGivesTheSameGraphEachTime) {
  const TensorBase x = TensorOf({1, 2});
  const TensorBase reversed = ViewOf(x, "reversed");
  for (int i = 0; i < 5; ++i) {
    AddInPlace(reversed, 10);
    Runtime::Get().Sync();
  }
  EXPECT_EQ(Read(x), (Data{51, 52}));
  EXPECT_EQ(Runtime::Get().counters().compiles, 1u);
}

}  // namespace
}  // namespace torch_xla_lite::tensor
