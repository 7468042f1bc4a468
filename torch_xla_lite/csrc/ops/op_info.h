// OpInfo: the properties of an op that determine how it is recorded, read from its schema once.
//
// A schema declares what an op writes to and which results share memory with arguments. A
// functional op is recorded as it is, an in-place or out= op as its functional form, whose results
// are written back, and a view as a step on its operand's storage.
//
//   const OpInfo info(handle, {});              // handle: aten::add_.Tensor
//   info.kind == OpInfo::Kind::kMutating;       // true
//   info.name;                                  // "aten::add.Tensor", the key of its lowering
//   info.mutated;                               // {0}

#ifndef TORCH_XLA_LITE_CSRC_OPS_OP_INFO_H_
#define TORCH_XLA_LITE_CSRC_OPS_OP_INFO_H_

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "torch_xla_lite/csrc/ops/op_facts.h"

namespace torch_xla_lite::ops {

// The arguments of an op that index one dimension of a tensor. They are runtime scalars, so that
// x[i] is not compiled for each i.
struct IndexArguments {
  int sizes;  // The indexed tensor, or its sizes.
  int dim;
  int start;  // The index itself, or the start of a slice.
  int end;    // -1: a single index.
  int step;
};

// Nothing for an op that indexes nothing.
std::optional<IndexArguments> FindIndexArguments(const c10::OperatorHandle& functional);

// Lowerings of users by the names of their ops: whether their numbers are constants of the graph.
using RegisteredOps = std::unordered_map<std::string, bool>;

// Whether an op that writes to arguments has no functional form, and torch makes it of other ops,
// which have one.
bool IsCompositeMutation(const c10::OperatorHandle& op);

struct OpInfo {
  enum class Kind : uint8_t {
    kFunctional,
    kMutating,     // Writes to arguments: in-place, out=, and ops that update buffers.
    kView,         // Its results share memory with its first argument.
    kInplaceView,  // Turns its first argument into a view of itself: t_, unsqueeze_.
    kOnCpu,        // Cannot be recorded: no functional form, or results that are not tensors.
  };

  enum class Role : uint8_t {
    kTensor,  // Also optional tensors and lists of tensors.
    kScalar,  // Number, and lists of numbers.
    kGenerator,
    kOut,    // Not an argument of the functional form.
    kStart,  // See IndexArguments.
    kEnd,
    kOther,
  };

  // How much memory an argument may share with a tensor that the op writes to, in increasing order;
  // torch's kernels raise beyond that. kSame: the same elements.
  enum class Sharing : uint8_t { kNothing, kSame, kAny };

  struct Argument {
    Role role;
    // A Scalar with this value is part of the key: it is the default (alpha=1), which XLA
    // simplifies away.
    std::optional<double> constant;
    // So is a negative one, or NaN, because torch's meta kernel may refuse it.
    bool negative_is_constant = false;
    // So are small ones: x * x * x and a square root are much cheaper than a power.
    bool is_exponent = false;
    Sharing sharing = Sharing::kAny;
  };

  // `registered`: the lowerings of users.
  OpInfo(const c10::OperatorHandle& op, const RegisteredOps& registered);

  // Views have layouts; results of other ops are row-major, and do not depend on strides.
  bool IsView() const { return kind == Kind::kView || kind == Kind::kInplaceView; }

  c10::OperatorHandle op;
  std::string name;
  Kind kind = Kind::kFunctional;
  bool is_random = false;
  bool is_lowered = false;
  // Scalars are parameters of the compiled graph and not part of its key.
  bool has_runtime_scalars = false;
  const OpFacts* facts;
  // Takes CPU tensors in its list of indices, as on CUDA.
  bool takes_cpu_indices = false;
  std::vector<Argument> arguments;
  // Numbers that the CPU kernel converts to the dtype of its result, and refuses if that cannot
  // hold them (infer/numbers.h).
  std::vector<int> ranged_numbers;
  // Arguments that are written to, in order. The functional form returns their new values
  // after its other results.
  std::vector<int> mutated;
  // Whether there are out= arguments among them.
  bool has_out = false;
  // Whether the first of them is a list, whose items the kernel writes one after the other.
  bool writes_lists = false;
  // Whether an argument may not share everything with them.
  bool limits_sharing = false;
  // For each result: the argument that is returned (in-place, out=), or -1 for a new tensor.
  std::vector<int> results;
  std::optional<IndexArguments> index;
  // The argument that decides the strides of the result (memory_format, or stride), or -1.
  int layout = -1;
  // The first of the arguments layout, device, pin_memory, which say where the result is, or -1.
  int options = -1;

 private:
  void ReadSchema();
  void ReadFacts();
  void ReadSharing();
};

}  // namespace torch_xla_lite::ops

#endif  // TORCH_XLA_LITE_CSRC_OPS_OP_INFO_H_
