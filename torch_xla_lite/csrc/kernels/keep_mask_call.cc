// The XLA custom call "torch_xla_lite.keep_mask": KeepMask of keep_mask.h.
//
//   key        uint32[2]
//   threshold  an attribute, int64
//   mask       pred[...]
//
// XLA repeats the instructions of the generator for each mask, compiles them each time, and takes
// six times as long for the mask.

#include <xla/ffi/api/ffi.h>

#include <cstdint>

#include "torch_xla_lite/csrc/kernels/keep_mask.h"
#include "torch_xla_lite/csrc/kernels/parallel.h"

namespace torch_xla_lite::kernels {
namespace {

namespace xffi = ::xla::ffi;

using Key = xffi::BufferR1<xffi::U32>;
using Mask = xffi::Buffer<xffi::PRED>;

xffi::Error Call(Key key, xffi::Result<Mask> mask, int64_t threshold, xffi::ThreadPool pool) {
  const Threefry generator = Threefry::Of(key.typed_data());
  const auto count = static_cast<int64_t>(mask->element_count());
  ParallelFor(pool, count, kMaskGrain, [&](int64_t begin, int64_t end) {
    KeepMask(generator, static_cast<uint32_t>(threshold), begin, end, mask->typed_data());
  });
  return xffi::Error::Success();
}

}  // namespace
}  // namespace torch_xla_lite::kernels

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteKeepMask, torch_xla_lite::kernels::Call,
                              xla::ffi::Ffi::Bind()
                                  .Arg<torch_xla_lite::kernels::Key>()
                                  .Ret<torch_xla_lite::kernels::Mask>()
                                  .Attr<int64_t>("threshold")
                                  .Ctx<xla::ffi::ThreadPool>());
