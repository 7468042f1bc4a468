#include "torch_xla_lite/csrc/ops/call.h"

#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "torch_xla_lite/csrc/device/guard.h"
#include "torch_xla_lite/csrc/ops/map_tensors.h"
#include "torch_xla_lite/csrc/ops/mixed_devices.h"
#include "torch_xla_lite/csrc/ops/words.h"
#include "torch_xla_lite/csrc/tensor/dtype.h"

namespace torch_xla_lite::ops {
namespace {

thread_local bool are_indices_constant = false;

using tensor::XTensorImpl;

// Shapes and infos are addresses, whose upper 16 bits are free.
constexpr int kDefaultDtypeShift = 56;
constexpr uint64_t kHasLayout = uint64_t{1} << 54;

uint64_t ScalarTypeWord(c10::ScalarType dtype) { return static_cast<uint64_t>(dtype); }

c10::Scalar ReadNumber(const at::Tensor& tensor) {
  // Calls the kernel of the CPU.
  return tensor.item();
}

bool IsConstant(const c10::Scalar& value, const OpInfo::Argument& argument) {
  // A flag may change, as that of a loop which ends.
  if (value.isComplex() || value.isBoolean()) return false;
  const double number = value.toDouble();
  // A fixed set: an exponent that changes from step to step is not compiled for.
  const bool is_cheap_power =
      number == 0.5 || (number >= 0 && number <= 4 && number == std::floor(number));
  return number == argument.constant || (argument.negative_is_constant && !(number >= 0)) ||
         (argument.is_exponent && is_cheap_power);
}

}  // namespace

c10::ScalarType DefaultDtypeOf(std::span<const uint64_t> words) {
  return static_cast<c10::ScalarType>(words[0] >> kDefaultDtypeShift);
}

void Call::PushInt(int64_t value) {
  words.push_back(Head(Tag::kInt));
  words.push_back(static_cast<uint64_t>(value));
}

void Call::PushDouble(double value) {
  words.push_back(Head(Tag::kDouble));
  words.push_back(std::bit_cast<uint64_t>(value));
}

Call::Status Call::Read(const OpInfo& info, c10::ArrayRef<c10::IValue> arguments) {
  info_ = &info;
  arguments_ = arguments;
  // The results of factories and of true division depend on the default dtype.
  words.push_back(reinterpret_cast<uint64_t>(&info) |
                  ScalarTypeWord(c10::get_default_dtype_as_scalartype()) << kDefaultDtypeShift);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const OpInfo::Argument& argument = info.arguments[i];
    switch (argument.role) {
      case OpInfo::Role::kTensor: {
        const Status status = ReadTensorArgument(arguments[i]);
        if (status != Status::kOk) return status;
        break;
      }
      case OpInfo::Role::kScalar:
        ReadScalar(arguments[i], argument);
        break;
      case OpInfo::Role::kGenerator:
        words.push_back(Head(Tag::kNone));
        break;
      case OpInfo::Role::kOut:
        break;
      case OpInfo::Role::kStart:
        ReadIndex(arguments);
        break;
      case OpInfo::Role::kEnd:
        ReadIndexEnd(arguments[i]);
        break;
      case OpInfo::Role::kOther:
        ReadGeneric(arguments[i]);
        break;
    }
  }
  // Out= tensors are not operands, but their dtypes and shapes are part of the key.
  for (const int i : info.mutated) {
    if (info.arguments[i].role != OpInfo::Role::kOut) continue;
    ForEachTensor(arguments[i], [&](const at::Tensor& out) {
      const XTensorImpl* impl = out.defined() ? XTensorImpl::From(out) : nullptr;
      layouts_.push_back(reinterpret_cast<uint64_t>(impl == nullptr ? nullptr : impl->shape()));
    });
  }
  words.append(layouts_.begin(), layouts_.end());
  return Status::kOk;
}

Call::Status Call::ReadTensorArgument(const c10::IValue& value) {
  if (!value.isList()) return ReadTensor(value);
  const auto items = value.toListRef();
  words.push_back(Head(Tag::kList, items.size()));
  for (const c10::IValue& item : items) {
    const Status status = ReadTensor(item, info_->takes_cpu_indices);
    if (status != Status::kOk) return status;
  }
  return Status::kOk;
}

Call::Status Call::ReadTensor(const c10::IValue& value, bool may_be_index) {
  if (value.isNone() || !value.toTensor().defined()) {
    words.push_back(Head(Tag::kNone));
    return Status::kOk;
  }
  const at::Tensor& tensor = value.toTensor();
  XTensorImpl* impl = XTensorImpl::From(tensor);
  if (impl == nullptr) return ReadCpuTensor(tensor, may_be_index);
  operands.push_back(impl);
  uint64_t payload = reinterpret_cast<uint64_t>(impl->shape());
  // Only views depend on strides: all values are row-major.
  if (info_->IsView() && !impl->is_row_major()) {
    payload |= kHasLayout;
    const auto strides = impl->strides();
    layouts_.append(strides.begin(), strides.end());
  }
  words.push_back(Head(Tag::kTensor, payload));
  return Status::kOk;
}

Call::Status Call::ReadCpuTensor(const at::Tensor& tensor, bool may_be_index) {
  if (tensor.device().is_privateuseone() || tensor.is_meta()) return Status::kForeign;
  if (tensor.device().is_cpu() && tensor.dim() == 0) {
    // Treated as a number, as on CUDA: its value is a runtime scalar.
    const bool wrapped = tensor.unsafeGetTensorImpl()->is_wrapped_number();
    const uint64_t flags = ScalarTypeWord(tensor.scalar_type()) | (wrapped ? kWrappedNumber : 0);
    PushRuntimeNumber(ReadNumber(tensor), flags);
    return Status::kOk;
  }
  if (may_be_index && tensor.device().is_cpu() &&
      c10::isIntegralType(tensor.scalar_type(), /*includeBool=*/true)) {
    return Status::kCpuIndices;
  }
  RefuseMixedDevices(*info_, arguments_, tensor);
}

void Call::PushRuntimeNumber(const c10::Scalar& value, uint64_t flags) {
  words.push_back(Head(Tag::kScalar, flags));
  if (value.isComplex()) {
    const auto number = value.toComplexDouble();
    scalars.push_back(std::bit_cast<uint64_t>(number.real()));
    scalars.push_back(std::bit_cast<uint64_t>(number.imag()));
  } else if (value.isFloatingPoint()) {
    scalars.push_back(std::bit_cast<uint64_t>(value.toDouble()));
  } else if (value.isBoolean()) {
    scalars.push_back(value.toBool() ? 1 : 0);
  } else if (value.isUnsigned()) {
    scalars.push_back(value.toUInt64());
  } else {
    scalars.push_back(static_cast<uint64_t>(value.toLong()));
  }
}

void Call::ReadScalar(const c10::IValue& value, const OpInfo::Argument& argument) {
  if (value.isNone()) {
    words.push_back(Head(Tag::kNone));
    return;
  }
  if (value.isList()) {
    const auto items = value.toListRef();
    words.push_back(Head(Tag::kList, items.size()));
    for (const c10::IValue& item : items) ReadScalar(item, argument);
    return;
  }
  if (!info_->has_runtime_scalars || IsConstant(value.toScalar(), argument)) {
    ReadGeneric(value);
    return;
  }
  const c10::Scalar number = value.toScalar();
  PushRuntimeNumber(number, ScalarTypeWord(number.type()));
}

void Call::ReadGeneric(const c10::IValue& value) {
  if (value.isNone()) {
    words.push_back(Head(Tag::kNone));
  } else if (value.isBool()) {
    words.push_back(Head(Tag::kBool, value.toBool()));
  } else if (value.isInt()) {
    PushInt(value.toInt());
  } else if (value.isDouble()) {
    PushDouble(value.toDouble());
  } else if (value.isComplexDouble()) {
    words.push_back(Head(Tag::kComplex));
    words.push_back(std::bit_cast<uint64_t>(value.toComplexDouble().real()));
    words.push_back(std::bit_cast<uint64_t>(value.toComplexDouble().imag()));
  } else if (value.isDevice()) {
    device::CheckDeviceIndex(value.toDevice().index());
    words.push_back(Head(Tag::kDevice));
  } else if (value.isString()) {
    const std::string_view text = value.toStringView();
    words.push_back(Head(Tag::kString, text.size()));
    for (size_t i = 0; i < text.size(); i += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i, std::min(sizeof word, text.size() - i));
      words.push_back(word);
    }
  } else if (value.isList()) {
    const auto items = value.toListRef();
    const bool is_int_list = value.isIntList();
    words.push_back(Head(is_int_list ? Tag::kIntList : Tag::kList, items.size()));
    for (const c10::IValue& item : items) {
      if (is_int_list) {
        words.push_back(static_cast<uint64_t>(item.toInt()));
      } else {
        ReadGeneric(item);
      }
    }
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "an argument of type ", value.type()->annotation_str(),
                                " cannot be recorded (in ", info_->name,
                                ").\nCall the op with tensors on the CPU:  x.cpu()");
  }
}

// The index, or the start of a slice, is a runtime scalar, so that it can change from call to call.
// 0 is a constant, because x[0] and x[:n] are common and cheaper as constants. An index out of
// range is not changed: it leads to an error.
void Call::ReadIndex(c10::ArrayRef<c10::IValue> arguments) {
  const IndexArguments& index = *info_->index;
  const c10::IValue& indexed = arguments[index.sizes];
  const bool is_tensor = indexed.isTensor();
  const at::DimVector sizes =
      is_tensor ? at::DimVector(indexed.toTensor().sizes()) : indexed.toDimVector();
  const int64_t rank = static_cast<int64_t>(sizes.size());
  int64_t dim = arguments[index.dim].toInt();
  if (dim < 0) dim += rank;
  is_valid_index_ = dim >= 0 && dim < rank;
  if (!is_valid_index_) {
    ReadGeneric(arguments[index.start]);
    return;
  }
  const int64_t size = sizes[dim];
  int64_t start = arguments[index.start].isNone() ? 0 : arguments[index.start].toInt();
  if (start < 0) start += size;
  if (index.end < 0) {
    is_valid_index_ = start >= 0 && start < size;
    if (!is_valid_index_) {
      ReadGeneric(arguments[index.start]);
      return;
    }
  } else {
    start = std::clamp<int64_t>(start, 0, size);
    int64_t end = arguments[index.end].isNone() ? size : arguments[index.end].toInt();
    if (end < 0) end += size;
    slice_end_ = std::clamp(end, start, size);
    // The length is part of the key, the start is not.
    layouts_.push_back(static_cast<uint64_t>(slice_end_ - start));
  }
  is_runtime_index_ = start != 0 && !are_indices_constant;
  if (!is_runtime_index_) {
    PushInt(start);
    return;
  }
  PushRuntimeNumber(start, ScalarTypeWord(c10::ScalarType::Long));
  if (is_tensor) runtime_offset = start * indexed.toTensor().stride(dim);
}

void Call::ReadIndexEnd(const c10::IValue& value) {
  if (!is_valid_index_) {
    ReadGeneric(value);
  } else if (is_runtime_index_) {
    words.push_back(Head(Tag::kNone));
  } else {
    PushInt(slice_end_);
  }
}

ConstantIndices::ConstantIndices() { are_indices_constant = true; }

ConstantIndices::~ConstantIndices() { are_indices_constant = false; }

}  // namespace torch_xla_lite::ops
