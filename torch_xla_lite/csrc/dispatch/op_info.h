// OpInfo: what the recorder has to know of an op, read from its schema once.
//
// torch's schemas say what an op writes to and what its results share memory with. From that
// follows how it is recorded: a functional op as it is; an in-place or out= op as its functional
// twin whose results are written back; a view as a step on its operand's storage.
//
//   const OpInfo info(handle, lowered_ops);     // handle: aten::add_.Tensor
//   info.kind == OpInfo::Kind::kMutating;       // true
//   info.name;                                  // "aten::add.Tensor", what lowerings are found by
//   info.mutated;                               // {0}

#ifndef TORCH_XLA_LITE_CSRC_DISPATCH_OP_INFO_H_
#define TORCH_XLA_LITE_CSRC_DISPATCH_OP_INFO_H_

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace torch_xla_lite::dispatch {

// The ops that have a lowering of their own, by the name of their functional form. True: the
// lowering needs its Scalar arguments as constants.
using LoweredOps = std::unordered_map<std::string, bool>;

// Which arguments of an op are positions in one dimension of a tensor, so that x[i] need not be
// compiled for each i.
struct IndexArguments {
  int sizes;  // The tensor that is indexed, or its sizes.
  int dim;
  int start;  // The index itself, or the start of a slice.
  int end;    // -1: a single index.
  int step;
};

struct OpInfo {
  enum class Kind : uint8_t {
    kFunctional,
    kMutating,     // Writes to arguments: in-place, out=, and ops that update buffers.
    kView,         // Its results share memory with its first argument.
    kInplaceView,  // Turns its first argument into a view of itself: t_, unsqueeze_.
    kOnCpu,        // Cannot be recorded: no functional form, or results that are not tensors.
  };

  enum class Role : uint8_t {
    kTensor,  // Also optional ones and lists of them.
    kScalar,  // Number, and lists of them.
    kGenerator,
    kOut,    // Not an argument of the functional form.
    kStart,  // See IndexArguments.
    kEnd,
    kOther,
  };

  struct Argument {
    Role role;
    // A Scalar that has this value is part of the op: it is what callers leave unsaid (alpha=1),
    // and compilers simplify it away.
    std::optional<double> constant;
  };

  OpInfo(const c10::OperatorHandle& op, const LoweredOps& lowered);

  // Views have layouts; everything else is row-major and does not look at its operands' strides.
  bool IsView() const { return kind == Kind::kView || kind == Kind::kInplaceView; }

  c10::OperatorHandle op;
  std::string name;
  Kind kind = Kind::kFunctional;
  bool is_random = false;
  bool is_lowered = false;
  // Scalars are parameters of the compiled graph and not part of its key.
  bool has_runtime_scalars = false;
  // Takes CPU tensors in its list of indices, as on CUDA.
  bool takes_cpu_indices = false;
  std::vector<Argument> arguments;
  // Arguments that are written to, in order. The functional form returns their new values behind
  // its other results.
  std::vector<int> mutated;
  // Whether there are out= arguments among them.
  bool has_out = false;
  // For each result: the argument that it is (in-place, out=), or -1 for a new tensor.
  std::vector<int> results;
  const IndexArguments* index = nullptr;
};

}  // namespace torch_xla_lite::dispatch

#endif  // TORCH_XLA_LITE_CSRC_DISPATCH_OP_INFO_H_
