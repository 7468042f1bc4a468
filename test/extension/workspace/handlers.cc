#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error Write(ffi::ResultBuffer<ffi::F32> result) {
  *result->typed_data() = 2;
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(WriteTwo, Write, ffi::Ffi::Bind().Ret<ffi::Buffer<ffi::F32>>());
