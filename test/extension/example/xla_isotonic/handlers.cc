// XLA's FFI handlers for the CPU: XlaIsotonicFit and XlaIsotonicPool, one row after another.

#include <vector>

#include "isotonic.h"

namespace xla_isotonic {
namespace {

ffi::Error Fit(ffi::AnyBuffer values, ffi::Result<ffi::AnyBuffer> fitted, bool increasing,
               double lower, double upper) {
  return WithElementType(values.element_type(), [&]<typename T>(T) {
    const Rows rows(values);
    std::vector<Block> blocks(rows.length);
    for (int64_t start = 0; start < rows.count * rows.length; start += rows.length) {
      FitRow(values.typed_data<T>() + start, rows.length, {increasing, lower, upper}, blocks.data(),
             fitted->typed_data<T>() + start);
    }
    return ffi::Error::Success();
  });
}

ffi::Error Pool(ffi::AnyBuffer values, ffi::AnyBuffer fitted, ffi::Result<ffi::AnyBuffer> pooled) {
  return WithElementType(values.element_type(), [&]<typename T>(T) {
    const Rows rows(values);
    for (int64_t start = 0; start < rows.count * rows.length; start += rows.length) {
      PoolRow(values.typed_data<T>() + start, fitted.typed_data<T>() + start, rows.length,
              pooled->typed_data<T>() + start);
    }
    return ffi::Error::Success();
  });
}

}  // namespace
}  // namespace xla_isotonic

XLA_FFI_DEFINE_HANDLER_SYMBOL(XlaIsotonicFit, xla_isotonic::Fit, xla_isotonic::FitSignature());
XLA_FFI_DEFINE_HANDLER_SYMBOL(XlaIsotonicPool, xla_isotonic::Pool, xla_isotonic::PoolSignature());
