#include "torch_xla_lite/csrc/ops/op_info.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace torch_xla_lite::ops {
namespace {

using Kind = OpInfo::Kind;
using Role = OpInfo::Role;

// `name`: without "aten::", such as "add_.Tensor".
OpInfo InfoOf(const std::string& name) {
  const size_t dot = name.find('.');
  const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
  return OpInfo(c10::Dispatcher::singleton().findSchemaOrThrow(
                    ("aten::" + name.substr(0, dot)).c_str(), overload.c_str()),
                {});
}

struct Op {
  std::string op;
  Kind kind;
  std::string name;
  std::vector<int> mutated;
  std::vector<int> results;
};

std::ostream& operator<<(std::ostream& stream, const Op& op) { return stream << op.op; }

class EachOp : public testing::TestWithParam<Op> {};

TEST_P(EachOp, IsReadFromItsSchema) {
  const Op& expected = GetParam();
  const OpInfo info = InfoOf(expected.op);
  EXPECT_EQ(info.kind, expected.kind);
  EXPECT_EQ(info.name, expected.name);
  EXPECT_EQ(info.mutated, expected.mutated);
  EXPECT_EQ(info.results, expected.results);
}

INSTANTIATE_TEST_SUITE_P(
    OpInfo, EachOp,
    testing::ValuesIn(std::vector<Op>{
        {"add.Tensor", Kind::kFunctional, "aten::add.Tensor", {}, {-1}},
        {"max.dim", Kind::kFunctional, "aten::max.dim", {}, {-1, -1}},
        {"nonzero", Kind::kFunctional, "aten::nonzero", {}, {-1}},
        {"_foreach_add.Scalar", Kind::kFunctional, "aten::_foreach_add.Scalar", {}, {-1}},
        // In place.
        {"add_.Tensor", Kind::kMutating, "aten::add.Tensor", {0}, {0}},
        {"__iand__.Tensor", Kind::kMutating, "aten::__and__.Tensor", {0}, {0}},
        {"index_put_", Kind::kMutating, "aten::index_put", {0}, {0}},
        {"_foreach_add_.Scalar", Kind::kMutating, "aten::_foreach_add.Scalar", {0}, {}},
        // out=
        {"add.out", Kind::kMutating, "aten::add.Tensor", {3}, {3}},
        {"max.dim_max", Kind::kMutating, "aten::max.dim", {3, 4}, {3, 4}},
        {"sort.values_stable", Kind::kMutating, "aten::sort.stable", {4, 5}, {4, 5}},
        // Several written arguments; none, some or all results are arguments.
        {"_native_batch_norm_legit",
         Kind::kMutating,
         "aten::_native_batch_norm_legit_functional",
         {3, 4},
         {-1, -1, -1}},
        {"_fused_adam_", Kind::kMutating, "aten::_fused_adam", {0, 1, 2, 3, 4}, {}},
        {"_amp_foreach_non_finite_check_and_unscale_",
         Kind::kMutating,
         "aten::_amp_foreach_non_finite_check_and_unscale",
         {0, 1},
         {}},
        // Views.
        {"t", Kind::kView, "aten::t", {}, {-1}},
        {"view", Kind::kView, "aten::view", {}, {-1}},
        {"split.Tensor", Kind::kView, "aten::split.Tensor", {}, {-1}},
        {"t_", Kind::kInplaceView, "aten::t", {0}, {0}},
        {"squeeze_.dim", Kind::kInplaceView, "aten::squeeze.dim", {0}, {0}},
        // Ops whose results are not tensors.
        {"equal", Kind::kOnCpu, "aten::equal", {}, {-1}},
        {"_local_scalar_dense", Kind::kOnCpu, "aten::_local_scalar_dense", {}, {-1}},
        // Without a lowering, the op could not use the generator of device jax.
        {"_sample_dirichlet", Kind::kOnCpu, "aten::_sample_dirichlet", {}, {-1}},
    }));

std::vector<Role> RolesOf(const OpInfo& info) {
  std::vector<Role> roles;
  for (const OpInfo::Argument& argument : info.arguments) roles.push_back(argument.role);
  return roles;
}

TEST(OpInfo, ArgumentsHaveTheRolesOfTheirTypes) {
  EXPECT_EQ(RolesOf(InfoOf("add.out")),
            (std::vector{Role::kTensor, Role::kTensor, Role::kScalar, Role::kOut}));
  EXPECT_EQ(RolesOf(InfoOf("index_put_")),
            (std::vector{Role::kTensor, Role::kTensor, Role::kTensor, Role::kOther}));
  EXPECT_EQ(RolesOf(InfoOf("bernoulli_.float")),
            (std::vector{Role::kTensor, Role::kOther, Role::kGenerator}));
  EXPECT_EQ(RolesOf(InfoOf("_foreach_add.ScalarList")),
            (std::vector{Role::kTensor, Role::kScalar}));
}

TEST(OpInfo, EachForeachOpInPlaceHasAFunctionalForm) {
  int count = 0;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    if (!name.name.starts_with("aten::_foreach_") || !name.name.ends_with("_")) continue;
    const auto op = c10::Dispatcher::singleton().findSchema(name);
    if (!op) continue;
    EXPECT_EQ(OpInfo(*op, {}).kind, Kind::kMutating) << name;
    ++count;
  }
  EXPECT_GT(count, 50);
}

}  // namespace
}  // namespace torch_xla_lite::ops
