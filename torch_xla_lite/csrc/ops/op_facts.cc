#include "torch_xla_lite/csrc/ops/op_facts.h"

#include <algorithm>
#include <iterator>

#include "torch_xla_lite/csrc/ops/op_table.h"

namespace torch_xla_lite::ops {
namespace {

static_assert(std::ranges::is_sorted(kOpTable, {}, &OpFacts::op));

// As numpy has it, but for floats of 16 bits.
char KindOf(c10::ScalarType dtype) {
  if (dtype == c10::ScalarType::Bool) return 'b';
  if (c10::isComplexType(dtype)) return 'c';
  if (dtype == c10::ScalarType::Half || dtype == c10::ScalarType::BFloat16) return 'h';
  if (dtype == c10::ScalarType::Float || dtype == c10::ScalarType::Double) return 'f';
  if (c10::isFloatingType(dtype)) return 'V';
  return c10::isSignedType(dtype) ? 'i' : 'u';
}

}  // namespace

const OpFacts& FactsOf(std::string_view op) {
  static constexpr OpFacts kMost;
  const auto* found = std::ranges::lower_bound(kOpTable, op, {}, &OpFacts::op);
  return found != std::end(kOpTable) && found->op == op ? *found : kMost;
}

std::string_view NextWord(std::string_view* words) {
  const size_t end = std::min(words->find(' '), words->size());
  const std::string_view word = words->substr(0, end);
  words->remove_prefix(std::min(end + 1, words->size()));
  return word;
}

bool HasWord(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    if (NextWord(&words) == word) return true;
  }
  return false;
}

bool IsOfKind(c10::ScalarType dtype, std::string_view kinds) {
  return kinds.find(KindOf(dtype)) != std::string_view::npos ||
         (dtype == c10::ScalarType::Long && kinds.find('l') != std::string_view::npos);
}

}  // namespace torch_xla_lite::ops
