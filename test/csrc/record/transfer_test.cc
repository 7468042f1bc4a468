#include "torch_xla_lite/csrc/record/transfer.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "test/csrc/record/recorder_test_base.h"

namespace torch_xla_lite::record {
namespace {

using TransferTest = RecorderTest;

TEST_F(TransferTest, DataComesBackAsItWent) {
  const at::Tensor x = Iota({2, 3}, at::kBFloat16);
  EXPECT_TRUE(Download(Upload(x)).equal(x));
}

TEST_F(TransferTest, UploadingCopies) {
  const at::Tensor x = Iota({2});
  const at::Tensor on_jax = Upload(x);
  x.add_(1);
  ExpectEqual(on_jax, Iota({2}));
}

TEST_F(TransferTest, DownloadingCopies) {
  const at::Tensor on_jax = Upload(Iota({2}));
  Download(on_jax).add_(1);
  ExpectEqual(on_jax, Iota({2}));
}

TEST_F(TransferTest, StridedDataBecomesDense) {
  ExpectEqual(Upload(Iota({2, 3}).t()), Iota({2, 3}).t().contiguous());
}

TEST_F(TransferTest, AViewIsDownloadedAsWhatItShows) {
  EXPECT_EQ(Values(Download(Upload(Iota({2, 3})).t())), (std::vector<double>{0, 3, 1, 4, 2, 5}));
}

TEST_F(TransferTest, NothingIsATensorToo) { ExpectEqual(Upload(Iota({0, 3})), Iota({0, 3})); }

TEST_F(TransferTest, MaterializingAPendingTensorComputesIt) {
  const at::Tensor x = Upload(Iota({2})).add(1);
  EXPECT_EQ(runtime.counters().executions, 0u);
  EXPECT_NE(Materialize(x).get(), nullptr);
  EXPECT_EQ(runtime.counters().executions, 1u);
}

TEST_F(TransferTest, ATypeThatXlaHasNotIsRefused) {
  EXPECT_THROW(Upload(Iota({2}, at::kComplexHalf)), c10::TypeError);
}

}  // namespace
}  // namespace torch_xla_lite::record
