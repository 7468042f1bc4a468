// The XLA custom calls "torch_xla_lite.aten" and "torch_xla_lite.infallible_aten"
// (lowering/base/ffi.py): run an ATen CPU kernel inside an XLA program.
//
//   operands of the op, then runtime scalars (0-d)  ->  defined outputs of the op
//   attributes: op       "aten::topk"
//               step     of the graph, which errors name; -1 for "infallible_aten"
//               words    int64[]; the arguments (ops/words.h)
//               defined  "110"; which outputs are defined
//               work_per_byte  of its operands and outputs (threads.h)
//               batched  "100" "1"; which operands and defined outputs have a row for each item of
//                        a batch, and may be divided (parts.h). Other outputs are then sums over
//                        the parts. "": no part can be computed alone
//
// XLA instantiates the call when it compiles the program, and executes it whenever the program
// runs; whatever depends on attributes alone is computed at instantiation.
// torch_xla_lite/lowering/base/ffi.py registers the functions below with jax; jaxlib calls them
// without Python.

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>
#include <c10/util/SmallVector.h>
#include <xla/ffi/api/ffi.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/aten/aten_call.h"
#include "torch_xla_lite/csrc/aten/kernel_keys.h"
#include "torch_xla_lite/csrc/ffi/buffer.h"
#include "torch_xla_lite/csrc/ffi/parts.h"
#include "torch_xla_lite/csrc/ffi/threads.h"
#include "torch_xla_lite/csrc/ops/op_name.h"
#include "torch_xla_lite/csrc/tensor/host_view.h"

namespace torch_xla_lite::ffi {
namespace {

namespace xffi = ::xla::ffi;

// The state that XLA keeps for each call. XLA sets `id` when the type is registered.
struct CallState {
  static xffi::TypeId id;
  static const xffi::TypeInfo info;

  aten::AtenCall call;
  int64_t step;
  size_t work_per_byte;
  std::string batched;
};

xffi::TypeId CallState::id = {};
const xffi::TypeInfo CallState::info = xffi::MakeTypeInfo<CallState>();

// The class that torch raises in Python, if it is not RuntimeError.
const char* PythonClass(const std::exception& error) {
  if (dynamic_cast<const c10::IndexError*>(&error)) return "IndexError: ";
  if (dynamic_cast<const c10::LinAlgError*>(&error)) return "_LinAlgError: ";
  if (dynamic_cast<const c10::NotImplementedError*>(&error)) return "NotImplementedError: ";
  if (dynamic_cast<const c10::TypeError*>(&error)) return "TypeError: ";
  if (dynamic_cast<const c10::ValueError*>(&error)) return "ValueError: ";
  return "";
}

// XLA passes nothing but the text on; graph_errors.py, `explained`, reads it.
xffi::Error Failure(std::string_view op, int64_t step, const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const char* message = torch_error ? torch_error->what_without_backtrace() : error.what();
  return xffi::Error(xffi::ErrorCode::kInvalidArgument, "step " + std::to_string(step) + ", " +
                                                            std::string(op) + ": " +
                                                            PythonClass(error) + message);
}

xffi::ErrorOr<std::unique_ptr<CallState>> Instantiate(std::string_view op, int64_t step,
                                                      xffi::Span<const int64_t> words,
                                                      std::string_view defined,
                                                      int64_t work_per_byte,
                                                      std::string_view batched) {
  try {
    const auto* first = reinterpret_cast<const uint64_t*>(words.begin());
    return std::make_unique<CallState>(
        CallState{aten::AtenCall(op, std::span(first, words.size()), defined), step,
                  static_cast<size_t>(work_per_byte), std::string(batched)});
  } catch (const std::exception& error) {
    return xffi::Unexpected(Failure(op, step, error));
  }
}

c10::ScalarType DtypeOf(const xffi::AnyBuffer& buffer) {
  return ScalarTypeOf(static_cast<XLA_FFI_DataType>(buffer.element_type()));
}

at::Tensor ViewOf(const xffi::AnyBuffer& buffer) {
  const auto dimensions = buffer.dimensions();
  return at::Tensor(tensor::HostView(DtypeOf(buffer), {dimensions.begin(), dimensions.size()},
                                     buffer.untyped_data()));
}

// Some rows of a view.
at::Tensor SliceOf(const at::Tensor& view, Rows rows) {
  c10::SmallVector<int64_t, 5> sizes(view.sizes().begin(), view.sizes().end());
  const size_t row_bytes = view.nbytes() / sizes[0];
  sizes[0] = rows.size;
  return at::Tensor(
      tensor::HostView(view.scalar_type(), sizes,
                       static_cast<char*>(view.mutable_data_ptr()) + rows.begin * row_bytes));
}

at::Tensor NewLike(const at::Tensor& tensor) {
  return at::Tensor(at::detail::empty_cpu(tensor.sizes(), tensor.options()));
}

thread_local bool is_in_kernel = false;

// The tensors of one execution of a call.
class Execution {
 public:
  Execution(const CallState& state, xffi::RemainingArgs arguments, xffi::RemainingRets results);

  void Run(xffi::ThreadPool& pool) {
    const size_t count = CountParts(pool);
    if (count > 1) return RunDivided(count, pool);
    const SerialBelow serial(work_);
    Run(operands_, outputs_);
  }

 private:
  using Tensors = c10::SmallVector<at::Tensor, 8>;

  void Run(const Tensors& operands, const Tensors& outputs) const;
  size_t CountParts(const xffi::ThreadPool& pool) const;
  void RunDivided(size_t count, xffi::ThreadPool& pool);
  bool IsBatched(size_t operand_or_output) const {
    return state_.batched[operand_or_output] == '1';
  }

  const CallState& state_;
  Tensors operands_;
  c10::SmallVector<ops::ScalarView, 4> scalars_;
  Tensors outputs_;
  size_t work_ = 0;
};

Execution::Execution(const CallState& state, xffi::RemainingArgs arguments,
                     xffi::RemainingRets results)
    : state_(state) {
  const ops::CallPlan& plan = state.call.plan();
  const size_t operand_count = plan.operand_count();
  TORCH_CHECK(arguments.size() == operand_count + plan.scalar_count(), "expects ", operand_count,
              " operands and ", plan.scalar_count(), " runtime scalars, got ", arguments.size(),
              " arguments in total.");
  for (size_t i = 0; i < operand_count; ++i) {
    operands_.push_back(ViewOf(*arguments.get<xffi::AnyBuffer>(i)));
  }
  for (size_t i = operand_count; i < arguments.size(); ++i) {
    const xffi::AnyBuffer scalar = *arguments.get<xffi::AnyBuffer>(i);
    scalars_.push_back({DtypeOf(scalar), scalar.untyped_data()});
  }
  for (size_t i = 0; i < results.size(); ++i) {
    outputs_.push_back(ViewOf(**results.get<xffi::AnyBuffer>(i)));
  }
  for (const at::Tensor& tensor : operands_) work_ += state.work_per_byte * tensor.nbytes();
  for (const at::Tensor& tensor : outputs_) work_ += state.work_per_byte * tensor.nbytes();
}

void Execution::Run(const Tensors& operands, const Tensors& outputs) const {
  is_in_kernel = true;
  const auto after = c10::make_scope_exit([] { is_in_kernel = false; });
  state_.call.Run(operands, scalars_, outputs);
}

// One for each thread, if no thread waits long for one that has a row more, and if what is summed
// is small.
size_t Execution::CountParts(const xffi::ThreadPool& pool) const {
  if (state_.batched.empty() || work_ < kSerialBytes) return 1;
  const auto count = std::min<int64_t>(at::get_num_threads(), pool.num_threads());
  if (count < 2) return 1;
  size_t divided = 0;
  size_t summed = 0;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (!IsBatched(i)) continue;
    const int64_t rows = operands_[i].size(0);
    const int64_t most = (rows + count - 1) / count;
    if (4 * most * count > 5 * rows) return 1;
    divided += operands_[i].nbytes();
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (!IsBatched(operands_.size() + i)) summed += outputs_[i].nbytes();
  }
  return summed * count <= divided ? count : 1;
}

void Execution::RunDivided(size_t count, xffi::ThreadPool& pool) {
  std::vector<Tensors> outputs(count);
  const auto run = [&](size_t part) {
    const SerialBelow serial(0);
    const auto rows_of = [&](const at::Tensor& whole) {
      return SliceOf(whole, RowsOf(part, count, whole.size(0)));
    };
    Tensors operands = operands_;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (IsBatched(i)) operands[i] = rows_of(operands[i]);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const at::Tensor& whole = outputs_[i];
      const bool is_summed = !IsBatched(operands_.size() + i);
      outputs[part].push_back(!is_summed ? rows_of(whole) : part == 0 ? whole : NewLike(whole));
    }
    Run(operands, outputs[part]);
  };
  RunParts(
      count, [&](auto task) { pool.Schedule(std::move(task)); }, run);
  const aten::KernelKeysGuard keys;
  const SerialBelow serial(0);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (IsBatched(operands_.size() + i)) continue;
    for (size_t part = 1; part < count; ++part) outputs_[i].add_(outputs[part][i]);
  }
}

xffi::Error Execute(CallState* state, xffi::ThreadPool pool, xffi::RemainingArgs arguments,
                    xffi::RemainingRets results) {
  try {
    Execution(*state, arguments, results).Run(pool);
    return xffi::Error::Success();
  } catch (const std::exception& error) {
    return Failure(ops::FullName(state->call.op().operator_name()), state->step, error);
  }
}

}  // namespace
}  // namespace torch_xla_lite::ffi

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteAtenInstantiate, torch_xla_lite::ffi::Instantiate,
                              xla::ffi::Ffi::BindInstantiate()
                                  .Attr<std::string_view>("op")
                                  .Attr<int64_t>("step")
                                  .Attr<xla::ffi::Span<const int64_t>>("words")
                                  .Attr<std::string_view>("defined")
                                  .Attr<int64_t>("work_per_byte")
                                  .Attr<std::string_view>("batched"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteAtenExecute, torch_xla_lite::ffi::Execute,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::State<torch_xla_lite::ffi::CallState>>()
                                  .Ctx<xla::ffi::ThreadPool>()
                                  .RemainingArgs()
                                  .RemainingRets());

// Whether a kernel runs on the calling thread: it cannot wait for the graph that it is part of.
extern "C" bool TorchXlaLiteAtenIsInKernel() { return torch_xla_lite::ffi::is_in_kernel; }

extern "C" XLA_FFI_TypeId* TorchXlaLiteAtenTypeId() { return &torch_xla_lite::ffi::CallState::id; }

extern "C" const XLA_FFI_TypeInfo* TorchXlaLiteAtenTypeInfo() {
  return &torch_xla_lite::ffi::CallState::info;
}
