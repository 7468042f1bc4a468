// The XLA custom call "torch_xla_lite.keep_mask": booleans, true where 32 random bits of jax's
// default generator are below a threshold.
//
//   key        uint32[2]
//   threshold  an attribute, int64
//   mask       pred[...]
//
// XLA makes 300 instructions of the generator for each mask, and compiles them each time.

#include <xla/ffi/api/ffi.h>

#include <algorithm>
#include <cstdint>

#include "torch_xla_lite/csrc/kernels/parallel.h"
#include "torch_xla_lite/csrc/kernels/processor_clones.h"
#include "torch_xla_lite/csrc/kernels/threefry.h"

namespace torch_xla_lite::kernels {
namespace {

namespace xffi = ::xla::ffi;

using Key = xffi::BufferR1<xffi::U32>;
using Mask = xffi::Buffer<xffi::PRED>;

// As many as take some 20 us.
constexpr int64_t kGrain = 1 << 14;
static_assert(kGrain % Threefry::kBlock == 0);

LITE_CLONES void Fill(const Threefry& key, uint32_t threshold, int64_t begin, int64_t end,
                      bool* mask) {
  for (int64_t i = begin; i < end; i += Threefry::kBlock) {
    const auto [high, low] = key.Block(i);
    const auto size = static_cast<int>(std::min<int64_t>(Threefry::kBlock, end - i));
    for (int j = 0; j < size; ++j) mask[i + j] = (high[j] ^ low[j]) < threshold;
  }
}

xffi::Error KeepMask(Key key, xffi::Result<Mask> mask, int64_t threshold, xffi::ThreadPool pool) {
  const Threefry generator = Threefry::Of(key.typed_data());
  ParallelFor(pool, mask->element_count(), kGrain, [&](int64_t begin, int64_t end) {
    Fill(generator, static_cast<uint32_t>(threshold), begin, end, mask->typed_data());
  });
  return xffi::Error::Success();
}

}  // namespace
}  // namespace torch_xla_lite::kernels

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteKeepMask, torch_xla_lite::kernels::KeepMask,
                              xla::ffi::Ffi::Bind()
                                  .Arg<torch_xla_lite::kernels::Key>()
                                  .Ret<torch_xla_lite::kernels::Mask>()
                                  .Attr<int64_t>("threshold")
                                  .Ctx<xla::ffi::ThreadPool>());
