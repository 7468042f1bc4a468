#include "torch_xla_lite/csrc/runtime/pending_limit.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::runtime {
namespace {

constexpr size_t kLimit = 100;

// A graph of a loop: where in the loop it begins, and how many ops it has.
using Cut = std::pair<size_t, size_t>;

// The graphs of a loop of different ops, after `start` ops that come once.
std::vector<Cut> CutsOf(const std::vector<const ir::Signature*>& loop, size_t start,
                        size_t num_ops) {
  static const ir::Signature once("once", {}, {});
  PendingLimit limit;
  limit.set_limit(kLimit);
  std::vector<Cut> cuts;
  std::set<const ir::Signature*> known;
  size_t length = 0;
  for (size_t i = 0; i < start + num_ops; ++i) {
    ++length;
    const ir::Signature* op = i < start ? &once : loop[(i - start) % loop.size()];
    if (!limit.Add(*op, known.insert(op).second)) continue;
    limit.Reset();
    if (i >= start) cuts.push_back({(i - start) % loop.size(), length});
    length = 0;
  }
  return cuts;
}

using Op = ir::Ref<const ir::Signature>;

std::vector<Op> Ops(size_t count) {
  std::vector<Op> ops(count);
  for (Op& op : ops) {
    op = ir::MakeRef<ir::Signature>("op", std::vector<uint64_t>(), std::vector<const ir::Shape*>());
  }
  return ops;
}

class PendingLimitTest : public testing::TestWithParam<size_t> {};

// Periods below and above the limit, divisors of it, primes.
INSTANTIATE_TEST_SUITE_P(Periods, PendingLimitTest,
                         testing::Values(1, 2, 7, 10, 33, 97, 99, 100, 101, 127, 199, 200, 201, 211,
                                         499, 1009, 5003));

TEST_P(PendingLimitTest, ALoopSettlesIntoFewGraphs) {
  const size_t period = GetParam();
  const std::vector<Op> ops = Ops(period);
  std::vector<const ir::Signature*> loop;
  for (const Op& op : ops) loop.push_back(op.get());
  for (const size_t start : {0, 1, 13, 150, 1000}) {
    const std::vector<Cut> cuts = CutsOf(loop, start, 500 * (period + kLimit));
    const std::set<Cut> last(cuts.end() - cuts.size() / 4, cuts.end());
    // A loop that is shorter than the limit becomes one graph.
    EXPECT_LE(last.size(), period <= kLimit ? 1 : period / kLimit + 1) << "start " << start;
    const std::set<Cut> all(cuts.begin(), cuts.end());
    EXPECT_LE(all.size(), period / kLimit + 6) << "start " << start;
    for (const auto& [place, length] : all) EXPECT_LE(length, 2 * (period + kLimit));
    for (const auto& [place, length] : all) EXPECT_GE(length, kLimit);
  }
}

TEST_P(PendingLimitTest, EqualLayersInALoopSettleToo) {
  const size_t period = GetParam();
  const std::vector<Op> ops = Ops(40);
  std::vector<const ir::Signature*> loop;
  for (size_t i = 0; i < period; ++i) loop.push_back(ops[i % 37].get());
  loop.push_back(ops[38].get());
  const std::vector<Cut> cuts = CutsOf(loop, 5, 500 * (period + kLimit));
  const std::set<Cut> last(cuts.end() - cuts.size() / 4, cuts.end());
  EXPECT_LE(last.size(), period / 37 + period / kLimit + 2);
}

TEST(PendingLimit, WithoutALimitNothingIsCut) {
  PendingLimit limit;
  const ir::Signature op("op", {}, {});
  for (int i = 0; i < 100'000; ++i) EXPECT_FALSE(limit.Add(op, false));
}

TEST(PendingLimit, AProgramThatNeverRepeatsItselfIsCutAtTwiceTheLimit) {
  PendingLimit limit;
  limit.set_limit(kLimit);
  const std::vector<Op> ops = Ops(5000);
  size_t pending = 0;
  for (const Op& op : ops) {
    ++pending;
    if (limit.Add(*op, true)) pending = 0;
    EXPECT_LT(pending, 2 * kLimit);
    if (pending == 0) limit.Reset();
  }
}

TEST(PendingLimit, BatchesThatMayBeHeldCutALoopOfFewOps) {
  PendingLimit limit;
  limit.set_limit(kLimit);
  const std::vector<Op> ops = Ops(3);
  constexpr size_t kBatch = size_t{40} << 20;
  EXPECT_FALSE(limit.AddUpload(100 * kBatch)) << "nothing is pending";
  std::set<size_t> later;
  for (size_t i = 0, held = 0; i < 200; ++i, ++held) {
    if (limit.AddUpload(kBatch)) {
      if (i > 100) later.insert(held);
      limit.Reset();
      held = 0;
    }
    EXPECT_LE(held, 6);
    for (const Op& op : ops) EXPECT_FALSE(limit.Add(*op, false));
  }
  EXPECT_EQ(later.size(), 1) << "graphs of several lengths";
  for (const Op& op : Ops(10)) EXPECT_TRUE(!limit.Add(*op, false) && limit.AddUpload(10 * kBatch));
  limit.Reset();
  bool is_cut = false;
  for (size_t i = 0; i < 2 * kLimit; ++i) is_cut |= limit.Add(*ops[0], false);
  EXPECT_TRUE(is_cut) << "after copies a loop without them waits too long";
}

}  // namespace
}  // namespace torch_xla_lite::runtime
