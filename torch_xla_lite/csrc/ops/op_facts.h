// What the recorder and the interpreter have to know of an op, beside its schema.
//
//   FactsOf("aten::addmm").one_dtype;    // "self mat1 mat2"
//
// The facts of an op stand in the decorator of its lowering; torch_xla_lite/lowering/base/facts.py
// has their meaning. scripts/lowering_table.py writes them to op_table.h.

#ifndef TORCH_XLA_LITE_CSRC_OPS_OP_FACTS_H_
#define TORCH_XLA_LITE_CSRC_OPS_OP_FACTS_H_

#include <c10/core/ScalarType.h>

#include <optional>
#include <string_view>

namespace torch_xla_lite::ops {

struct OpFacts {
  bool is_lowered = false;
  std::string_view kernel = {};
  bool constants = false;
  std::string_view runtime_floats = {};
  std::string_view negative = {};
  bool indexes = false;
  std::string_view refuses = {};
  std::string_view refuses_results = {};
  std::string_view dtypes = {};
  std::string_view elements = {};
  std::string_view numbers = {};
  std::string_view one_dtype = {};
  std::string_view dtype_of_input = {};
  std::string_view refused_if = {};
  std::string_view divides = {};
  bool casts_numbers = false;
  std::optional<std::string_view> shares = std::nullopt;
  std::string_view shape = {};
  bool zeros = false;
  std::string_view strides = {};
  std::string_view own_kernel = {};
  std::string_view completed_by = {};
  std::string_view draw = {};
  bool any_strides = false;
  bool channels_last = false;
  bool dense_operand = false;
  bool rewrites = false;
  bool by_value = true;
  bool writes_statistics = false;
  std::string_view kernel_needs = {};
  std::string_view rounds = {};
};

// `op` is the name of a functional form, such as "aten::add.Tensor". The facts of most ops if there
// are none of this one.
const OpFacts& FactsOf(std::string_view op);

// The first word of a fact, which is taken off.
std::string_view NextWord(std::string_view* words);

// Whether one of the words of a fact is `word`.
bool HasWord(std::string_view words, std::string_view word);

// Whether a dtype is of one of the kinds in `refuses`, or int64 and l is among them.
bool IsOfKind(c10::ScalarType dtype, std::string_view kinds);

}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_OP_FACTS_H_
