#include "torch_xla_lite/csrc/record/merged_views.h"

#include <c10/core/ScalarType.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/hash.h"
#include "torch_xla_lite/csrc/ir/recent_table.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/ir/shape.h"
#include "torch_xla_lite/csrc/ir/signature.h"
#include "torch_xla_lite/csrc/ops/words.h"

namespace torch_xla_lite::record {
namespace {

using tensor::OpSignature;
using tensor::ViewStep;
using Words = std::vector<uint64_t>;

// Graphs of usual programs have the views that the program makes: lowerings of a mesh, and people,
// know them.
constexpr uint32_t kMostUnmerged = 8;

constexpr std::string_view kView = "aten::view", kPermute = "aten::permute",
                           kSlice = "aten::slice.Tensor";

// Each undoes itself, if the shape is what it was; and so do these two undo each other.
constexpr std::array<std::string_view, 3> kOwnInverses = {"aten::_conj", "aten::_neg_view",
                                                          "aten::view.dtype"};
constexpr std::string_view kAsReal = "aten::view_as_real", kAsComplex = "aten::view_as_complex";

struct Slice {
  int64_t dim;
  std::optional<int64_t> start;  // Nothing if it is a scalar of the step.
  int64_t step;
};

// Beside an address of 48 bits is whether the operand has strides (ops/call.cc).
constexpr int kAddressBits = 48;

const ir::Shape* OperandOf(const OpSignature& view) {
  const uint64_t address = ops::PayloadOf(view.words[1]) & ((uint64_t{1} << kAddressBits) - 1);
  return reinterpret_cast<const ir::Shape*>(address);
}

int64_t RankOf(const OpSignature& view) { return std::ssize(OperandOf(view)->dims()); }

int64_t Canonical(int64_t dim, int64_t rank) { return dim < 0 ? dim + rank : dim; }

// The arguments after the operand.
std::span<const uint64_t> Arguments(const OpSignature& view) {
  return std::span(view.words).subspan(2);
}

// The strides of the operand, which follow the arguments; empty if it is row-major.
std::vector<int64_t> OperandStrides(const OpSignature& view) {
  if (ops::PayloadOf(view.words[1]) >> kAddressBits == 0) return {};
  const auto end = view.words.end() - (view.op == kSlice ? 1 : 0);
  return {end - RankOf(view), end};
}

// Size and stride of each dimension that has several elements.
std::vector<std::pair<int64_t, int64_t>> Steps(const ir::Shape& shape,
                                               const std::vector<int64_t>& strides) {
  std::vector<std::pair<int64_t, int64_t>> steps;
  int64_t dense = 1;
  for (int64_t dim = std::ssize(shape.dims()) - 1; dim >= 0; --dim) {
    const int64_t size = shape.dims()[dim];
    if (size != 1) steps.emplace_back(size, strides.empty() ? dense : strides[dim]);
    dense *= size;
  }
  return steps;
}

// Whether the elements of the result are all those of the operand, in their order. A merged step
// has no layouts: it is a reshape only by its name.
bool IsReshape(const OpSignature& view) {
  const ir::Shape &operand = *OperandOf(view), &result = *view.outputs[0];
  if (operand.NumElements() != result.NumElements() || operand.dtype() != result.dtype() ||
      std::ranges::find(kOwnInverses, view.op) != kOwnInverses.end())
    return false;
  if (view.op == kView || view.layouts.empty()) return view.op == kView;
  const std::vector<int64_t> before = OperandStrides(view), &after = view.layouts[0].strides;
  return view.layouts[0].offset == 0 &&
         ((before.empty() && after.empty()) || Steps(operand, before) == Steps(result, after));
}

bool IsInverse(const OpSignature& first, const OpSignature& second) {
  if (OperandOf(first) != second.outputs[0]) return false;
  if (first.op == second.op) return std::ranges::find(kOwnInverses, first.op) != kOwnInverses.end();
  return (first.op == kAsReal && second.op == kAsComplex) ||
         (first.op == kAsComplex && second.op == kAsReal);
}

// For each dimension of the result that of the operand; nothing for other ops.
std::optional<std::vector<int64_t>> OrderOf(const OpSignature& view) {
  const int64_t rank = RankOf(view);
  const auto arguments = Arguments(view);
  std::vector<int64_t> order;
  if (view.op == kPermute && ops::TagOf(arguments[0]) == ops::Tag::kIntList) {
    for (int64_t i = 0; i < rank; ++i) {
      order.push_back(Canonical(static_cast<int64_t>(arguments[1 + i]), rank));
    }
    return order;
  }
  for (int64_t i = 0; i < rank; ++i) order.push_back(i);
  if (view.op == "aten::t") {
    std::ranges::reverse(order);
  } else if (view.op == "aten::transpose.int") {
    if (rank > 0) {
      std::swap(order[Canonical(static_cast<int64_t>(arguments[1]), rank)],
                order[Canonical(static_cast<int64_t>(arguments[3]), rank)]);
    }
  } else {
    return std::nullopt;
  }
  return order;
}

// (dim, start, end, step): Ints, but for a start that is a scalar, and the end then.
std::optional<Slice> SliceOf(const OpSignature& view) {
  const auto arguments = Arguments(view);
  if (view.op != kSlice || ops::TagOf(arguments[0]) != ops::Tag::kInt) return std::nullopt;
  Slice slice{.dim = Canonical(static_cast<int64_t>(arguments[1]), RankOf(view)),
              .start = std::nullopt,
              .step = 1};
  size_t i = 2;
  if (ops::TagOf(arguments[i]) == ops::Tag::kInt)
    slice.start = static_cast<int64_t>(arguments[i + 1]);
  i += 1 + ops::WordsAfter(arguments[i]);
  i += 1 + ops::WordsAfter(arguments[i]);
  slice.step = static_cast<int64_t>(arguments[i + 1]);
  return slice;
}

// The words of a view of the operand of `first`, with the default dtype of `second`.
Words WordsOf(std::string_view op, const OpSignature& first, const OpSignature& second) {
  return {(second.words[0] >> 56 << 56) | reinterpret_cast<uint64_t>(op.data()),
          ops::Head(ops::Tag::kTensor, reinterpret_cast<uint64_t>(OperandOf(first)))};
}

void PushInts(const std::vector<int64_t>& values, Words* words) {
  words->push_back(ops::Head(ops::Tag::kIntList, values.size()));
  words->insert(words->end(), values.begin(), values.end());
}

void PushInt(int64_t value, Words* words) {
  words->insert(words->end(), {ops::Head(ops::Tag::kInt), static_cast<uint64_t>(value)});
}

// What two steps are together.
struct Merged : ir::RefCounted {
  enum class Kind : uint8_t { kBoth, kFirst, kNone, kOne };

  Merged(const OpSignature& first, const OpSignature& second)
      : numbers{first.number, second.number} {}

  // Of the signatures.
  const std::array<uint64_t, 2> numbers;
  // Which steps are left: both, the first, none, or one of this signature.
  Kind kind = Kind::kBoth;
  ir::Ref<const OpSignature> signature;
  // If it is a slice: those that it is made of.
  std::optional<std::pair<Slice, Slice>> slices;

  ViewStep::Scalars Scalars(const ViewStep::Scalars& first, const ViewStep::Scalars& second) const {
    if (!slices || (slices->first.start && slices->second.start)) return {};
    const auto start = [](const Slice& slice, const ViewStep::Scalars& scalars) {
      return slice.start ? *slice.start : static_cast<int64_t>(scalars[0]);
    };
    const int64_t begin =
        start(slices->first, first) + slices->first.step * start(slices->second, second);
    return {static_cast<uint64_t>(begin)};
  }
};

ir::SignatureTable& Signatures() LITE_REQUIRES(ir::record_lock) {
  static auto* table = new ir::SignatureTable;
  return *table;
}

// A view of the operand of `first` that gives the result of `second`.
ir::Ref<const OpSignature> SignatureOf(std::string_view op, Words words, const OpSignature& first,
                                       const OpSignature& second) LITE_REQUIRES(ir::record_lock) {
  auto made = ir::MakeRef<OpSignature>(std::string(op), std::move(words),
                                       std::vector<const ir::Shape*>{second.outputs[0]});
  made->Keep(OperandOf(first));
  return ir::Ref<const OpSignature>::Share(
      static_cast<const OpSignature*>(Signatures().Insert(std::move(made))));
}

void MergeReshapes(const OpSignature& first, const OpSignature& second, Merged* merged)
    LITE_REQUIRES(ir::record_lock) {
  if (OperandOf(first) == second.outputs[0]) {
    merged->kind = Merged::Kind::kNone;
    return;
  }
  Words words = WordsOf(kView, first, second);
  PushInts(second.outputs[0]->dims(), &words);
  merged->kind = Merged::Kind::kOne;
  merged->signature = SignatureOf(kView, std::move(words), first, second);
}

void MergeOrders(const OpSignature& first, const OpSignature& second,
                 const std::vector<int64_t>& first_order, std::vector<int64_t> order,
                 Merged* merged) LITE_REQUIRES(ir::record_lock) {
  for (int64_t& dim : order) dim = first_order[dim];
  if (std::ranges::is_sorted(order)) {
    merged->kind = Merged::Kind::kNone;
    return;
  }
  Words words = WordsOf(kPermute, first, second);
  PushInts(order, &words);
  merged->kind = Merged::Kind::kOne;
  merged->signature = SignatureOf(kPermute, std::move(words), first, second);
}

void MergeSlices(const OpSignature& first, const OpSignature& second, const Slice& outer,
                 const Slice& inner, Merged* merged) LITE_REQUIRES(ir::record_lock) {
  const int64_t count = second.outputs[0]->dims()[inner.dim];
  const int64_t step = outer.step * inner.step;
  const int64_t length = count == 0 ? 0 : (count - 1) * step + 1;
  Words words = WordsOf(kSlice, first, second);
  PushInt(inner.dim, &words);
  if (outer.start && inner.start) {
    const int64_t start = *outer.start + outer.step * *inner.start;
    PushInt(start, &words);
    PushInt(start + length, &words);
  } else {
    words.push_back(ops::Head(ops::Tag::kScalar, static_cast<uint64_t>(c10::ScalarType::Long)));
    words.push_back(ops::Head(ops::Tag::kNone));
  }
  PushInt(step, &words);
  // From the start to the end; it follows the arguments (ops/call.cc).
  words.push_back(static_cast<uint64_t>(length));
  merged->kind = Merged::Kind::kOne;
  merged->signature = SignatureOf(kSlice, std::move(words), first, second);
  merged->slices.emplace(outer, inner);
}

ir::Ref<Merged> Merge(const OpSignature& first, const OpSignature& second)
    LITE_REQUIRES(ir::record_lock) {
  auto merged = ir::MakeRef<Merged>(first, second);
  if (IsReshape(second) && OperandOf(second) == second.outputs[0]) {
    merged->kind = Merged::Kind::kFirst;
  } else if (IsInverse(first, second)) {
    merged->kind = Merged::Kind::kNone;
  } else if (IsReshape(first) && IsReshape(second)) {
    MergeReshapes(first, second, merged.get());
  } else if (const auto outer = OrderOf(first), inner = OrderOf(second); outer && inner) {
    MergeOrders(first, second, *outer, *inner, merged.get());
  } else if (const auto outer = SliceOf(first), inner = SliceOf(second);
             outer && inner && outer->dim == inner->dim) {
    MergeSlices(first, second, *outer, *inner, merged.get());
  }
  return merged;
}

// Valid while the record lock is held.
const Merged& MergedOf(const OpSignature& first, const OpSignature& second)
    LITE_REQUIRES(ir::record_lock) {
  static auto* table = new ir::RecentTable<Merged>(/*limit=*/8192);
  const std::array numbers{first.number, second.number};
  const uint64_t hash = ir::HashWords(numbers);
  const auto is_equal = [&](const Merged& merged) { return merged.numbers == numbers; };
  if (const Merged* known = table->Find(hash, is_equal)) return *known;
  return *table->Insert(hash, Merge(first, second));
}

}  // namespace

c10::intrusive_ptr<ViewStep> MergedStep(c10::intrusive_ptr<ViewStep> previous,
                                        const OpSignature& signature, uint32_t output,
                                        ViewStep::Scalars scalars) {
  const bool is_long = previous != nullptr && previous->depth >= kMostUnmerged;
  if (!is_long || signature.outputs.size() != 1 || previous->signature->outputs.size() != 1) {
    return c10::make_intrusive<ViewStep>(std::move(previous), &signature, output,
                                         std::move(scalars));
  }
  const Merged& merged = MergedOf(*previous->signature, signature);
  switch (merged.kind) {
    case Merged::Kind::kFirst:
      return previous;
    case Merged::Kind::kNone:
      return previous->previous;
    case Merged::Kind::kOne:
      return c10::make_intrusive<ViewStep>(previous->previous, merged.signature.get(), 0,
                                           merged.Scalars(previous->scalars, scalars));
    case Merged::Kind::kBoth:
      break;
  }
  return c10::make_intrusive<ViewStep>(std::move(previous), &signature, output, std::move(scalars));
}

}  // namespace torch_xla_lite::record
