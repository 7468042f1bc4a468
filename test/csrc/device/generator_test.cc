#include "torch_xla_lite/csrc/device/generator.h"

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

namespace torch_xla_lite::device {
namespace {

TEST(JaxGenerator, EachOpGetsTheNextOffset) {
  JaxGenerator generator(7);
  EXPECT_EQ(generator.NextSeedOffset().offset, 0u);
  RngState second = generator.NextSeedOffset();
  EXPECT_EQ(second.seed, 7u);
  EXPECT_EQ(second.offset, 1u);
}

TEST(JaxGenerator, SeedingStartsAgain) {
  JaxGenerator generator(7);
  generator.NextSeedOffset();
  generator.set_current_seed(8);
  EXPECT_EQ(generator.current_seed(), 8u);
  EXPECT_EQ(generator.get_offset(), 0u);
}

TEST(JaxGenerator, TwoSeedsFromEntropyDiffer) {
  JaxGenerator generator;
  EXPECT_NE(generator.seed(), generator.seed());
}

TEST(JaxGenerator, StateIsSixteenBytesOnTheCpu) {
  at::Generator generator = at::make_generator<JaxGenerator>(7);
  at::Tensor state = generator.get_state();
  EXPECT_EQ(state.numel(), 16);
  EXPECT_EQ(state.scalar_type(), at::kByte);
  EXPECT_TRUE(state.is_cpu());
}

TEST(JaxGenerator, StateOfOneGeneratorContinuesInAnother) {
  at::Generator first = at::make_generator<JaxGenerator>(7);
  first.get<JaxGenerator>()->NextSeedOffset();
  at::Generator second = at::make_generator<JaxGenerator>(8);
  second.set_state(first.get_state());
  EXPECT_EQ(second.current_seed(), 7u);
  EXPECT_EQ(second.get_offset(), 1u);
}

TEST(JaxGenerator, StateOfAnotherSizeIsRefused) {
  at::Generator first = at::make_generator<JaxGenerator>(7);
  at::Tensor half = first.get_state().narrow(0, 0, 8);
  EXPECT_THROW(first.set_state(half), c10::Error);
}

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

TEST(CheckJaxGenerator, TheGivenGeneratorIsUsed) {
  at::Generator generator = at::make_generator<JaxGenerator>(7);
  EXPECT_EQ(&CheckJaxGenerator(generator), generator.get<JaxGenerator>());
}

}  // namespace
}  // namespace torch_xla_lite::device
