// The XLA custom calls "torch_xla_lite.aten" and "torch_xla_lite.infallible_aten"
// (lowering/base/ffi.py): run an ATen CPU kernel inside an XLA program.
//
//   operands of the op, then runtime scalars (0-d)  ->  defined outputs of the op
//   attributes: op       "aten::topk"
//               words    int64[]; the arguments (ops/words.h)
//               defined  "110"; which outputs are defined
//               work_per_byte  of its operands and outputs (threads.h)
//
// XLA instantiates the call when it compiles the program, and executes it whenever the program
// runs; whatever depends on attributes alone is computed at instantiation.
// torch_xla_lite/lowering/base/ffi.py registers the functions below with jax; jaxlib calls them
// without Python.

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <c10/util/ScopeExit.h>
#include <c10/util/SmallVector.h>
#include <xla/ffi/api/ffi.h>

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "torch_xla_lite/csrc/ffi/buffer.h"
#include "torch_xla_lite/csrc/ffi/threads.h"
#include "torch_xla_lite/csrc/ops/aten_call.h"
#include "torch_xla_lite/csrc/ops/op_name.h"
#include "torch_xla_lite/csrc/tensor/host_view.h"

namespace torch_xla_lite::ffi {
namespace {

namespace xffi = ::xla::ffi;

// The state that XLA keeps for each call. XLA sets `id` when the type is registered.
struct CallState {
  static xffi::TypeId id;
  static const xffi::TypeInfo info;

  dispatch::AtenCall call;
  size_t work_per_byte;
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

// Errors name the op: their readers wrote torch code and know nothing about custom calls. XLA
// passes nothing but the text on; graph_errors.py, `explained`, reads the class from it.
xffi::Error Failure(std::string_view op, const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  const char* message = torch_error ? torch_error->what_without_backtrace() : error.what();
  return xffi::Error(xffi::ErrorCode::kInvalidArgument,
                     std::string(op) + ": " + PythonClass(error) + message);
}

xffi::ErrorOr<std::unique_ptr<CallState>> Instantiate(std::string_view op,
                                                      xffi::Span<const int64_t> words,
                                                      std::string_view defined,
                                                      int64_t work_per_byte) {
  try {
    const auto* first = reinterpret_cast<const uint64_t*>(words.begin());
    return std::make_unique<CallState>(
        CallState{dispatch::AtenCall(op, std::span(first, words.size()), defined),
                  static_cast<size_t>(work_per_byte)});
  } catch (const std::exception& error) {
    return xffi::Unexpected(Failure(op, error));
  }
}

at::Tensor ViewOf(const xffi::AnyBuffer& buffer) {
  const auto dimensions = buffer.dimensions();
  const auto dtype = ScalarTypeOf(static_cast<XLA_FFI_DataType>(buffer.element_type()));
  return at::Tensor(
      tensor::HostView(dtype, {dimensions.begin(), dimensions.size()}, buffer.untyped_data()));
}

size_t TotalBytes(std::span<const at::Tensor> tensors) {
  size_t bytes = 0;
  for (const at::Tensor& tensor : tensors) bytes += tensor.nbytes();
  return bytes;
}

thread_local bool is_in_kernel = false;

xffi::Error Execute(CallState* state, xffi::RemainingArgs arguments, xffi::RemainingRets results) {
  const dispatch::AtenCall& call = state->call;
  try {
    const size_t operand_count = call.plan().operand_count();
    TORCH_CHECK(arguments.size() == operand_count + call.plan().scalar_count(), "expects ",
                operand_count, " operands and ", call.plan().scalar_count(),
                " runtime scalars, got ", arguments.size(), " arguments in total.");
    c10::SmallVector<at::Tensor, 8> operands;
    for (size_t i = 0; i < operand_count; ++i) {
      operands.push_back(ViewOf(*arguments.get<xffi::AnyBuffer>(i)));
    }
    c10::SmallVector<dispatch::ScalarView, 4> scalars;
    for (size_t i = operand_count; i < arguments.size(); ++i) {
      const xffi::AnyBuffer scalar = *arguments.get<xffi::AnyBuffer>(i);
      scalars.push_back({ScalarTypeOf(static_cast<XLA_FFI_DataType>(scalar.element_type())),
                         scalar.untyped_data()});
    }
    c10::SmallVector<at::Tensor, 4> outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      outputs.push_back(ViewOf(**results.get<xffi::AnyBuffer>(i)));
    }
    SerialBelow serial(state->work_per_byte * (TotalBytes(operands) + TotalBytes(outputs)));
    is_in_kernel = true;
    const auto after = c10::make_scope_exit([] { is_in_kernel = false; });
    call.Run(operands, scalars, outputs);
    return xffi::Error::Success();
  } catch (const std::exception& error) {
    return Failure(dispatch::FullName(call.op().operator_name()), error);
  }
}

}  // namespace
}  // namespace torch_xla_lite::ffi

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteAtenInstantiate, torch_xla_lite::ffi::Instantiate,
                              xla::ffi::Ffi::BindInstantiate()
                                  .Attr<std::string_view>("op")
                                  .Attr<xla::ffi::Span<const int64_t>>("words")
                                  .Attr<std::string_view>("defined")
                                  .Attr<int64_t>("work_per_byte"));

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteAtenExecute, torch_xla_lite::ffi::Execute,
                              xla::ffi::Ffi::Bind()
                                  .Ctx<xla::ffi::State<torch_xla_lite::ffi::CallState>>()
                                  .RemainingArgs()
                                  .RemainingRets());

// Whether a kernel runs on the calling thread: it cannot wait for the graph that it is part of.
extern "C" bool TorchXlaLiteAtenIsInKernel() { return torch_xla_lite::ffi::is_in_kernel; }

extern "C" XLA_FFI_TypeId* TorchXlaLiteAtenTypeId() { return &torch_xla_lite::ffi::CallState::id; }

extern "C" const XLA_FFI_TypeInfo* TorchXlaLiteAtenTypeInfo() {
  return &torch_xla_lite::ffi::CallState::info;
}
