#include "torch_xla_lite/csrc/ops/op_facts.h"

#include <algorithm>
#include <unordered_map>

#include "torch_xla_lite/csrc/ops/op_table.h"

namespace torch_xla_lite::ops {
namespace {

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
  static const auto* const table = [] {
    auto* const facts_of = new std::unordered_map<std::string_view, const OpFacts*>;
    for (const auto& [ops, facts] : kOpTable) {
      for (std::string_view rest = ops; !rest.empty();) facts_of->emplace(NextWord(&rest), &facts);
    }
    return facts_of;
  }();
  if (op.starts_with("aten::")) op.remove_prefix(6);
  const auto found = table->find(op);
  return found != table->end() ? *found->second : kMost;
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
