// Shared by the tests of recorded ops: a fixture that runs ops with torch's kernels, and small
// tensors.
//
//   using RecordTest = RecorderTest;
//
//   TEST_F(RecordTest, AnOpGivesWhatItGivesOnTheCpu) {
//     ExpectEqual(Upload(Iota({2, 3})).neg(), Iota({2, 3}).neg());
//   }

#ifndef TORCH_XLA_LITE_TEST_CSRC_RECORD_RECORDER_TEST_BASE_H_
#define TORCH_XLA_LITE_TEST_CSRC_RECORD_RECORDER_TEST_BASE_H_

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "test/csrc/record/aten_executor.h"
#include "torch_xla_lite/csrc/record/transfer.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace torch_xla_lite::record {

// 0, 1, 2 ... on the CPU.
at::Tensor Iota(std::vector<int64_t> sizes, c10::ScalarType dtype = at::kFloat);
at::Tensor Indices(std::vector<int64_t> values);
std::vector<double> Values(const at::Tensor& cpu_tensor);

// Calls an aten op that is not a method of tensors.
std::vector<c10::IValue> CallOp(const std::string& name, const std::string& overload,
                                std::vector<c10::IValue> arguments);

class RecorderTest : public testing::Test {
 protected:
  // Registers the kernels, once for all tests of a program.
  static void SetUpTestSuite();
  RecorderTest();

  // Compares values, dtype, sizes and strides.
  static void ExpectEqual(const at::Tensor& on_jax, const at::Tensor& expected);

  runtime::Runtime& runtime = runtime::Runtime::Get();
  AtenExecutor executor;
};

}  // namespace torch_xla_lite::record

#endif  // TORCH_XLA_LITE_TEST_CSRC_RECORD_RECORDER_TEST_BASE_H_
