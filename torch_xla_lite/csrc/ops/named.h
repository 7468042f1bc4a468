// Functions that facts of ops name (op_facts.h).
//
//   static constexpr auto kRules = std::to_array<std::pair<std::string_view, Rule>>({
//       {"like", FactoryLike}});
//   Named(kRules, facts.results);    // FactoryLike; null for the empty name; raises for others

#ifndef TORCH_XLA_LITE_CSRC_OPS_NAMED_H_
#define TORCH_XLA_LITE_CSRC_OPS_NAMED_H_

#include <c10/util/Exception.h>

#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace torch_xla_lite::ops {

template <typename Function, size_t kSize>
Function Named(const std::array<std::pair<std::string_view, Function>, kSize>& functions,
               std::string_view name) {
  if (name.empty()) return nullptr;
  for (const auto& [known, function] : functions) {
    if (known == name) return function;
  }
  TORCH_CHECK(false, "a fact of an op names the function ", name, ", which there is not.");
}

}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_NAMED_H_
