// The XLA custom call "torch_xla_lite.store": its result is its operand, in the same memory.
//
// XLA does not fuse across custom calls, so the value is computed once and stored
// (torch_xla_lite/compiler/stored_values.py says where that helps). lowering/base/ffi.py registers
// it with jax.

#include <xla/ffi/api/ffi.h>

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

}  // namespace
}  // namespace torch_xla_lite::ffi

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    TorchXlaLiteStore, torch_xla_lite::ffi::Store,
    xla::ffi::Ffi::Bind().Arg<xla::ffi::AnyBuffer>().Ret<xla::ffi::AnyBuffer>());
