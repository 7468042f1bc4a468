#include "torch_xla_lite/csrc/device/generator.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace torch_xla_lite::device {
namespace {

TEST(JaxGenerator, CloneGoesItsOwnWay) {
  at::Generator first = at::make_generator<JaxGenerator>(7);
  at::Generator second = first.clone();
  first.get<JaxGenerator>()->NextSeedOffset();
  EXPECT_EQ(second.current_seed(), 7u);
  EXPECT_EQ(second.get_offset(), 0u);
}

TEST(JaxGenerator, NoTwoThreadsGetTheSameKey) {
  JaxGenerator generator(7);
  std::vector<std::vector<uint64_t>> offsets(4);
  std::vector<std::thread> threads;
  for (auto& mine : offsets) {
    threads.emplace_back([&generator, &mine] {
      for (int i = 0; i < 1000; ++i) mine.push_back(generator.NextSeedOffset().offset);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<uint64_t> distinct;
  for (const auto& mine : offsets) distinct.insert(mine.begin(), mine.end());
  EXPECT_EQ(distinct.size(), 4000u);
}

TEST(CheckJaxGenerator, NoGeneratorMeansTheDefaultOne) {
  EXPECT_EQ(&CheckJaxGenerator(std::nullopt), &DefaultGenerator());
}

TEST(JaxGenerator, StateOfAnotherSizeIsRefused) {
  at::Generator first = at::make_generator<JaxGenerator>(7);
  at::Tensor half = first.get_state().narrow(0, 0, 8);
  EXPECT_THROW(first.set_state(half), c10::Error);
}

}  // namespace
}  // namespace torch_xla_lite::device
