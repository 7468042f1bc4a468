#include "torch_xla_lite/csrc/kernels_of_torch/named_kernels.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace torch_xla_lite::kernels_of_torch {
namespace {

TEST(NamedKernels, AreNamedAsTorchNamesThem) {
  for (const NamedKernel& kernel : NamedKernels()) {
    const std::string name = kernel.name;
    const size_t dot = std::min(name.find('.'), name.size());
    const std::string overload = name.substr(std::min(dot + 1, name.size()));
    EXPECT_TRUE(c10::Dispatcher::singleton()
                    .findSchema({"aten::" + name.substr(0, dot), overload})
                    .has_value())
        << name;
  }
}

}  // namespace
}  // namespace torch_xla_lite::kernels_of_torch
