#include "torch_xla_lite/csrc/ffi/parts.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace torch_xla_lite::ffi {
namespace {

using Task = std::function<void()>;

TEST(RowsOf, PartsFollowEachOtherAndDifferByOneRowAtMost) {
  for (int64_t rows = 1; rows < 20; ++rows) {
    for (size_t count = 1; count <= 7; ++count) {
      int64_t end = 0;
      std::set<int64_t> sizes;
      for (size_t part = 0; part < count; ++part) {
        const Rows found = RowsOf(part, count, rows);
        EXPECT_EQ(found.begin, end);
        end += found.size;
        sizes.insert(found.size);
      }
      EXPECT_EQ(end, rows);
      EXPECT_LE(*sizes.rbegin() - *sizes.begin(), 1);
    }
  }
}

TEST(RunParts, EachPartRunsOnceOnSomeThread) {
  std::vector<std::thread> threads;
  std::vector<int> runs(50);
  RunParts(
      runs.size(), [&](Task task) { threads.emplace_back(std::move(task)); },
      [&](size_t part) { ++runs[part]; });
  EXPECT_EQ(runs, std::vector<int>(50, 1));
  for (std::thread& thread : threads) thread.join();
}

TEST(RunParts, TheCallerRunsWhatNobodyTakesAndLateTasksFindNothing) {
  std::vector<Task> late;
  std::vector<size_t> parts;
  RunParts(
      3, [&](Task task) { late.push_back(std::move(task)); },
      [&](size_t part) { parts.push_back(part); });
  for (const Task& task : late) task();
  EXPECT_EQ(parts, (std::vector<size_t>{0, 1, 2}));
}

TEST(RunParts, TheFirstErrorArrivesAfterAllPartsHaveEnded) {
  std::vector<size_t> parts;
  const auto run = [&](size_t part) {
    parts.push_back(part);
    if (part > 0) throw std::runtime_error(std::to_string(part));
  };
  try {
    RunParts(
        3, [](const Task&) {}, run);
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "1");
  }
  EXPECT_EQ(parts.size(), 3);
}

}  // namespace
}  // namespace torch_xla_lite::ffi
