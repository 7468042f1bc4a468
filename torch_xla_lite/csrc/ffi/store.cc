// XLA custom calls that compute nothing. XLA does not fuse across them, so it stores their results.
//
//   torch_xla_lite.store   its result is its operand, in the same memory: a value that is computed
//                          once (torch_xla_lite/compiler/stored_values.py says where that helps)
//   torch_xla_lite.split   a result for each item of its operand: code that reads one of them is
//                          the same whichever it reads, so XLA compiles it once
//
// lowering/base/ffi.py registers them with jax.

#include <xla/ffi/api/ffi.h>

#include <cstddef>
#include <cstring>

namespace torch_xla_lite::ffi {
namespace {

namespace xffi = ::xla::ffi;

xffi::Error Store(xffi::AnyBuffer operand, xffi::Result<xffi::AnyBuffer> result) {
  // XLA need not give both the same memory.
  if (result->untyped_data() != operand.untyped_data()) {
    std::memcpy(result->untyped_data(), operand.untyped_data(), operand.size_bytes());
  }
  return xffi::Error::Success();
}

xffi::Error Split(xffi::AnyBuffer operand, xffi::RemainingRets results) {
  const auto* items = static_cast<const std::byte*>(operand.untyped_data());
  const size_t size = operand.size_bytes() / results.size();
  for (size_t i = 0; i < results.size(); ++i) {
    auto result = results.get<xffi::AnyBuffer>(i);
    if (result.has_error()) return result.error();
    std::memcpy((*result)->untyped_data(), items + i * size, size);
  }
  return xffi::Error::Success();
}

}  // namespace
}  // namespace torch_xla_lite::ffi

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    TorchXlaLiteStore, torch_xla_lite::ffi::Store,
    xla::ffi::Ffi::Bind().Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>());

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteSplit, torch_xla_lite::ffi::Split,
                              xla::ffi::Ffi::Bind().Arg<xla::ffi::AnyBuffer>().RemainingRets());
