#include "torch_xla_lite/csrc/ir/signature.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/shape.h"

namespace torch_xla_lite::ir {
namespace {

using Words = std::vector<uint64_t>;
using Shapes = std::vector<const Shape*>;

Ref<const Signature> Relu(Words words) {
  const Ref<const Shape> shape = Shape::Of(DType{6}, {2});
  return MakeRef<const Signature>("aten::relu", std::move(words), std::vector{shape.get()});
}

TEST(SignatureTable, OtherWordsAreAnotherSignature) {
  SignatureTable table;
  table.Insert(Relu({1, 2}));
  EXPECT_EQ(table.Find(Words{2, 1}), nullptr);
  EXPECT_EQ(table.Find(Words{1}), nullptr);
  EXPECT_EQ(table.Find(Words{1, 2, 0}), nullptr);
  EXPECT_EQ(table.Find(Words{}), nullptr);
}

// Two threads may infer the same call at the same time; keys contain the address of the first one.
TEST(SignatureTable, TheFirstOfEqualSignaturesStays) {
  SignatureTable table;
  const Signature* first = table.Insert(Relu({1, 2}));
  EXPECT_EQ(table.Insert(Relu({1, 2})), first);
  EXPECT_EQ(table.size(), 1u);
}

TEST(SignatureTable, AddressesSurviveItsGrowth) {
  SignatureTable table;
  std::vector<const Signature*> inserted;
  for (uint64_t i = 0; i < 5000; ++i) inserted.push_back(table.Insert(Relu({i * 64, i % 3})));
  EXPECT_EQ(table.size(), 5000u);
  for (uint64_t i = 0; i < 5000; ++i) {
    ASSERT_EQ(table.Find(Words{i * 64, i % 3}), inserted[i]) << i;
    ASSERT_EQ(table.Find(Words{i * 64, 3}), nullptr) << i;
  }
}

TEST(SignatureTable, ItForgetsSignaturesThatNothingRefersTo) {
  SignatureTable table;
  const auto kept = Ref<const Signature>::Share(table.Insert(Relu({7})));
  for (uint64_t i = 0; i < 100'000; ++i) table.Insert(Relu({i, 1}));
  EXPECT_LE(table.size(), 8192u);
  EXPECT_EQ(table.Find(Words{7}), kept.get());
  EXPECT_EQ(table.Find(Words{0, 1}), nullptr);
}

TEST(Signature, ItsShapesLiveAsLongAsItself) {
  const Ref<const Signature> signature = Relu({1});
  const Shape* const shape = signature->outputs[0];
  for (int64_t i = 0; i < 20'000; ++i) Shape::Of(DType{6}, {3, i});
  EXPECT_EQ(Shape::Of(DType{6}, {2}).get(), shape);
}

TEST(Signature, TheHashIsOfWhatAddressesReferTo) {
  // At other addresses in each round, as in another process.
  std::set<uint64_t> hashes;
  for (uint64_t op = 0; op < 2 << 20; op += 1 << 20) {
    const Ref<const Shape> shape = Shape::Of(DType{6}, {3, 3}), other = Shape::Of(DType{6}, {4});
    for (const auto* operand : {shape.get(), other.get()}) {
      const auto address = reinterpret_cast<uint64_t>(operand);
      for (const uint64_t word : {address, address << 8 | 1, address << 8 | 2, uint64_t{7}}) {
        const auto call = MakeRef<Signature>("relu", Words{op, word}, Shapes{shape.get()});
        call->Keep(operand);
        hashes.insert(call->hash());
      }
    }
    hashes.insert(MakeRef<Signature>("relu", Words{op}, Shapes{other.get()})->hash());
    hashes.insert(MakeRef<Signature>("tanh", Words{op}, Shapes{other.get()})->hash());
    hashes.insert(MakeRef<Signature>("tanh", Words{op | 1ull << 56}, Shapes{other.get()})->hash());
    for (int64_t i = 0; i < 30'000; ++i) Shape::Of(DType{6}, {3, i});
  }
  EXPECT_EQ(hashes.size(), 3u + 3u + 1u + 3u);
}

TEST(Signature, NumbersAreNotUsedAgain) {
  const uint64_t number = Relu({1})->number;
  EXPECT_GT(Relu({1})->number, number);
}

}  // namespace
}  // namespace torch_xla_lite::ir
