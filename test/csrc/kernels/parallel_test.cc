#include "torch_xla_lite/csrc/kernels/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

namespace torch_xla_lite::kernels {
namespace {

// Starts a thread for each task.
class Threads {
 public:
  explicit Threads(int64_t count) : count_(count) {}
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }

  void Schedule(std::function<void()> task) { threads_.emplace_back(std::move(task)); }
  int64_t num_threads() const { return count_; }
  size_t started() const { return threads_.size(); }

 private:
  int64_t count_;
  std::vector<std::thread> threads_;
};

// Does not run tasks before RunAll(), like a pool whose threads are busy.
class Busy {
 public:
  void Schedule(std::function<void()> task) { tasks_.push_back(std::move(task)); }
  int64_t num_threads() const { return 4; }
  void RunAll() {
    for (const auto& task : tasks_) task();
  }
  size_t waiting() const { return tasks_.size(); }

 private:
  std::vector<std::function<void()>> tasks_;
};

TEST(ParallelFor, DoesEachIterationOnce) {
  std::vector<std::atomic<int>> visits(1003);
  Threads pool(4);
  ParallelFor(pool, 1003, 10, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) ++visits[i];
  });
  for (const auto& count : visits) EXPECT_EQ(count, 1);
}

TEST(ParallelFor, WaitsForWhatOthersHaveBegun) {
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> helped = false;
  std::atomic<int> done = 0;
  Threads pool(2);
  ParallelFor(pool, 2, 1, [&](int64_t, int64_t) {
    if (std::this_thread::get_id() == caller) {
      helped.wait(false);
    } else {
      helped = true;
      helped.notify_all();
      for (int i = 0; i < 10000; ++i) std::this_thread::yield();
    }
    ++done;
  });
  EXPECT_EQ(done, 2);
}

TEST(ParallelFor, OfNothingDoesNothing) {
  Threads pool(4);
  ParallelFor(pool, 0, 10, [](int64_t, int64_t) { FAIL(); });
}

TEST(ParallelFor, WakesNobodyForLessThanTwoTasks) {
  Threads pool(4);
  ParallelFor(pool, 10, 10, [](int64_t, int64_t) {});
  EXPECT_EQ(pool.started(), 0);
}

TEST(ParallelFor, EndsThoughNoThreadOfThePoolIsFree) {
  int64_t done = 0;
  Busy pool;
  ParallelFor(pool, 100, 10, [&](int64_t begin, int64_t end) { done += end - begin; });
  EXPECT_EQ(done, 100);
  EXPECT_EQ(pool.waiting(), 3);
}

TEST(ParallelFor, TasksThatStartAfterTheEndFindNothingToDo) {
  int64_t calls = 0;
  Busy pool;
  {
    const std::function<void(int64_t, int64_t)> body = [&](int64_t, int64_t) { ++calls; };
    ParallelFor(pool, 100, 10, body);
  }
  pool.RunAll();
  EXPECT_EQ(calls, 10);
}

}  // namespace
}  // namespace torch_xla_lite::kernels
