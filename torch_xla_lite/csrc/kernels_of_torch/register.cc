#include "torch_xla_lite/csrc/kernels_of_torch/register.h"

#include <torch/library.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "torch_xla_lite/csrc/device/guard.h"
#include "torch_xla_lite/csrc/infer/quantized.h"
#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/kernels_of_torch/linear.h"
#include "torch_xla_lite/csrc/kernels_of_torch/masked_put.h"
#include "torch_xla_lite/csrc/kernels_of_torch/named_kernels.h"
#include "torch_xla_lite/csrc/kernels_of_torch/sparse_gradient.h"
#include "torch_xla_lite/csrc/kernels_of_torch/without_reads.h"
#include "torch_xla_lite/csrc/ops/op_facts.h"
#include "torch_xla_lite/csrc/ops/op_info.h"
#include "torch_xla_lite/csrc/ops/op_name.h"
#include "torch_xla_lite/csrc/record/cpu_fallback.h"
#include "torch_xla_lite/csrc/record/record.h"
#include "torch_xla_lite/csrc/record/typed_kernel.h"
#include "torch_xla_lite/csrc/runtime/runtime.h"

namespace torch_xla_lite::kernels_of_torch {
namespace {

// Ops of other libraries (torchvision, user-defined ops) are recorded too, if they have meta
// kernels. Those of torch's quantized modules are refused.
class ForeignOps final : public c10::OpRegistrationListener {
 public:
  void onOperatorRegistered(const c10::OperatorHandle&) override {}

  // The name may come back with another schema: a cell of a notebook that defines an op runs again.
  void onOperatorDeregistered(const c10::OperatorHandle& op) override {
    const ir::MutexLock lock(&mutex_);
    kernels_.erase(op.operator_name());
  }

  static void Run(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                  torch::jit::Stack* stack) {
    static ForeignOps& ops = Listening();
    (*ops.KernelOf(op, stack))(op, keys, stack);
  }

 private:
  // Torch's dispatcher owns it, and calls it as long as the handle lives: until the process ends.
  static ForeignOps& Listening() {
    auto made = std::make_unique<ForeignOps>();
    ForeignOps& ops = *made;
    new auto(c10::Dispatcher::singleton().addRegistrationListener(std::move(made)));
    return ops;
  }

  c10::intrusive_ptr<record::RecordKernel> KernelOf(const c10::OperatorHandle& op,
                                                    torch::jit::Stack* stack) {
    const ir::MutexLock lock(&mutex_);
    auto& kernel = kernels_[op.operator_name()];
    if (kernel == nullptr && op.operator_name().name.starts_with("quantized::")) {
      infer::RefuseQuantized(op, stack);
    }
    if (kernel == nullptr) kernel = c10::make_intrusive<record::RecordKernel>();
    return kernel;
  }

  ir::Mutex mutex_;
  std::unordered_map<c10::OperatorName, c10::intrusive_ptr<record::RecordKernel>> kernels_
      LITE_GUARDED_BY(mutex_);
};

// Runs an op on copies of its arguments on the CPU.
class CpuKernel final : public c10::OperatorKernel {
 public:
  explicit CpuKernel(const c10::OperatorHandle& op) : info_(op, {}) {}
  void operator()(const c10::OperatorHandle&, c10::DispatchKeySet, torch::jit::Stack* stack) {
    record::RunOnCpu(info_, stack);
  }

 private:
  const ops::OpInfo info_;
};

// Ops that compute with weights of quantized modules.
bool IsQuantized(const std::string& name) {
  return name.starts_with("aten::fbgemm_") || name.starts_with("aten::quantized_");
}

const ops::OpFacts& FactsOf(const c10::OperatorHandle& op) {
  return ops::FactsOf(c10::toString(op.operator_name()));
}

// Composite ops are recorded as the ops that they are made of, but for those whose facts say
// "recorder".
bool IsRecorded(const c10::OperatorHandle& op) {
  const std::string_view kernel = FactsOf(op).kernel;
  if (!kernel.empty()) return kernel == "recorder";
  return !op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
         !ops::IsCompositeMutation(op);
}

bool HasNamedKernel(const std::string& name) {
  return std::ranges::any_of(NamedKernels(), [&](const NamedKernel& kernel) {
    return name == std::string("aten::") + kernel.name;
  });
}

// Makes a sparse tensor of dense ones, or of sizes.
bool IsSparseFactory(const std::string& name) {
  const bool is_sparse = name.starts_with("aten::sparse_") || name.starts_with("aten::_sparse_");
  return is_sparse && name.find("_tensor") != std::string::npos;
}

void RefuseSparse(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(false, "device jax has dense tensors only (in ",
                              op.operator_name().name,
                              ").\nMake sparse tensors of tensors on the CPU:  x.cpu()");
}

void RefuseNested(const c10::OperatorHandle& op, torch::jit::Stack*) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      false, "device jax has no nested tensors of layout torch.strided (in ",
      op.operator_name().name, ").\nUse the other layout:  layout=torch.jagged");
}

// Of compressed layouts, torch's compositions make tensors that no other op takes.
void RefuseSparseFactory(const std::string& name) {
  for (const auto key : {c10::DispatchKey::PrivateUse1, c10::DispatchKey::SparsePrivateUse1,
                         c10::DispatchKey::SparseCsrPrivateUse1}) {
    auto* library = new torch::Library(torch::Library::IMPL, "aten", key, __FILE__, __LINE__);
    library->impl(name.c_str(), torch::CppFunction::makeFromBoxedFunction<&RefuseSparse>());
  }
}

template <c10::KernelFunction::BoxedKernelFunction* refuse>
void RefuseAll(c10::DispatchKey key) {
  auto* library = new torch::Library(torch::Library::IMPL, "_", key, __FILE__, __LINE__);
  library->fallback(torch::CppFunction::makeFromBoxedFunction<refuse>());
}

}  // namespace

void RegisterKernels() {
  // Never destroyed: the destructor of a Library removes its kernels.
  static auto* aten = new torch::Library(torch::Library::IMPL, "aten",
                                         c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  static auto* autograd = new torch::Library(
      torch::Library::IMPL, "aten", c10::DispatchKey::AutogradPrivateUse1, __FILE__, __LINE__);
  static auto* others = new torch::Library(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1,
                                           __FILE__, __LINE__);
  std::unordered_set<std::string> done;
  for (const NamedKernel& kernel : NamedKernels()) {
    aten->impl(kernel.name, kernel.function());
    done.insert(std::string("aten::") + kernel.name);
  }
  for (const char* name : {"index_put", "index_put_"}) {
    autograd->impl(name, MaskedPut());
  }
  for (const char* name : {"embedding", "_embedding_bag"}) {
    autograd->impl(name, RefuseSparseGradient());
  }
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (!name.name.starts_with("aten::")) continue;
    const auto op = dispatcher.findSchema(name);
    if (!op) continue;
    const std::string full = ops::FullName(name);
    if (IsQuantized(name.name)) {
      aten->impl(full.c_str(),
                 torch::CppFunction::makeFromBoxedFunction<&infer::RefuseQuantized>());
      continue;
    }
    if (IsSparseFactory(name.name)) {
      RefuseSparseFactory(full);
      continue;
    }
    if (!IsRecorded(*op)) {
      if (FactsOf(*op).kernel == "cpu") {
        aten->impl(full.c_str(),
                   torch::CppFunction::makeFromBoxedFunctor(std::make_unique<CpuKernel>(*op)));
      }
      continue;
    }
    if (done.contains(full)) continue;
    if (record::RegisterTypedKernels(*op, full, aten, autograd)) continue;
    aten->impl(full.c_str(),
               torch::CppFunction::makeFromBoxedFunctor(std::make_unique<record::RecordKernel>()));
  }
  autograd->impl("linear", Linear());
  autograd->impl("max", Max());
  autograd->impl("min", Min());
  autograd->impl("median", Median());
  autograd->impl("nanmedian", NanMedian());
  for (torch::Library* library : {aten, autograd}) library->impl("cov", Cov());
  others->fallback(torch::CppFunction::makeFromBoxedFunction<&ForeignOps::Run>());
  RefuseAll<&RefuseSparse>(c10::DispatchKey::SparsePrivateUse1);
  RefuseAll<&RefuseSparse>(c10::DispatchKey::SparseCsrPrivateUse1);
  RefuseAll<&infer::RefuseQuantized>(c10::DispatchKey::QuantizedPrivateUse1);
  RefuseAll<&RefuseNested>(c10::DispatchKey::NestedTensorPrivateUse1);
  device::SetSynchronize([] { runtime::Runtime::Get().Synchronize(); });
}

void RegisterLowering(const std::string& name, bool needs_constants) {
  const auto op = ops::FindOp(name);
  TORCH_CHECK(op, "there is no op ", name,
              ".\nDefine it before its lowering:  torch.library.custom_op(...)");
  TORCH_CHECK(IsRecorded(*op), name,
              " is made of other ops on every device (CompositeImplicitAutograd): it is those that "
              "are recorded.\nDefine it as one that is not:  torch.library.custom_op(...)");
  const bool is_aten = name.starts_with("aten::");
  // All ops of torch have a kernel here: the recorder, or an named kernel.
  const bool has_kernel =
      is_aten ? HasNamedKernel(name) : op->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1);
  TORCH_CHECK(!has_kernel, name,
              " has a kernel of its own for device jax, which would run instead of the lowering.\n"
              "Register one of the two.");
  const std::string functional = ops::OpInfo(*op, {}).name;
  TORCH_CHECK(functional == name, name, " is recorded as ", functional,
              ", which is what lowerings are found by.\nRegister that one:  register_lowering(\"",
              functional, "\")");
  record::AddLoweredOp(name, needs_constants);
  if (is_aten) return;  // It is recorded already.
  // Never destroyed: the destructor of a Library removes its kernels.
  auto* library = new torch::Library(torch::Library::IMPL, name.substr(0, name.find("::")),
                                     c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  library->impl(name.c_str(),
                torch::CppFunction::makeFromBoxedFunctor(std::make_unique<record::RecordKernel>()));
}

}  // namespace torch_xla_lite::kernels_of_torch
