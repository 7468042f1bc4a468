// The XLA custom calls "torch_xla_lite.random_keys", "random_bits", "keep_mask" and "draw".
//
//   random_keys  uint64[n] -> uint32[n - 1, 2]: the key of each seed and the offset behind it
//   random_bits  a key -> uint32[...] or uint64[...]
//   keep_mask    a key -> pred[...], with the attribute `threshold`, int64
//   draw         a key, float or double[...] of each parameter -> the same of numbers, with the
//                attribute `distribution`, int64 (distributions.h)
//
// XLA repeats the instructions of the generator for each key and each array, compiles them each
// time, and takes six times as long for a mask. Interpreted graphs call the same functions.

#include <xla/ffi/api/ffi.h>

#include <cstdint>

#include "torch_xla_lite/csrc/kernels/distributions.h"
#include "torch_xla_lite/csrc/kernels/parallel.h"
#include "torch_xla_lite/csrc/kernels/random_bits.h"

namespace torch_xla_lite::kernels {
namespace {

namespace xffi = ::xla::ffi;

using Numbers = xffi::BufferR1<xffi::U64>;
using Keys = xffi::BufferR2<xffi::U32>;
using Key = xffi::BufferR1<xffi::U32>;
using Mask = xffi::Buffer<xffi::PRED>;

xffi::Error MakeKeys(Numbers numbers, xffi::Result<Keys> keys) {
  for (size_t i = 0; i + 1 < numbers.element_count(); ++i) {
    const uint64_t* const pair = numbers.typed_data() + i;
    Threefry::Of(pair[0], pair[1]).Store(keys->typed_data() + 2 * i);
  }
  return xffi::Error::Success();
}

xffi::Error MakeBits(Key key, xffi::Result<xffi::AnyBuffer> bits, xffi::ThreadPool pool) {
  const Threefry generator = Threefry::Of(key.typed_data());
  const auto fill = [&](auto* data) {
    ParallelFor(pool, static_cast<int64_t>(bits->element_count()), kBitsGrain,
                [&](int64_t begin, int64_t end) { RandomBits(generator, begin, end, data); });
  };
  if (bits->element_type() == xffi::U64) {
    fill(static_cast<uint64_t*>(bits->untyped_data()));
  } else {
    fill(static_cast<uint32_t*>(bits->untyped_data()));
  }
  return xffi::Error::Success();
}

xffi::Error MakeMask(Key key, xffi::Result<Mask> mask, int64_t threshold, xffi::ThreadPool pool) {
  const Threefry generator = Threefry::Of(key.typed_data());
  const auto count = static_cast<int64_t>(mask->element_count());
  ParallelFor(pool, count, kBitsGrain, [&](int64_t begin, int64_t end) {
    KeepMask(generator, static_cast<uint32_t>(threshold), begin, end, mask->typed_data());
  });
  return xffi::Error::Success();
}

template <typename T>
void MakeNumbers(Distribution distribution, Key key, xffi::RemainingArgs given, xffi::AnyBuffer out,
                 xffi::ThreadPool pool) {
  Parameters<T> parameters{};
  for (size_t i = 0; i < given.size(); ++i) {
    parameters.at(i) = static_cast<const T*>(given.get<xffi::AnyBuffer>(i)->untyped_data());
  }
  const Threefry generator = Threefry::Of(key.typed_data());
  auto* const values = static_cast<T*>(out.untyped_data());
  ParallelFor(pool, static_cast<int64_t>(out.element_count()), GrainOf(distribution),
              [&](int64_t begin, int64_t end) {
                Draw(distribution, generator, begin, end, parameters, values);
              });
}

xffi::Error MakeDraw(Key key, xffi::RemainingArgs parameters, xffi::Result<xffi::AnyBuffer> values,
                     int64_t number, xffi::ThreadPool pool) {
  const auto distribution = static_cast<Distribution>(number);
  if (values->element_type() == xffi::F64) {
    MakeNumbers<double>(distribution, key, parameters, *values, pool);
  } else {
    MakeNumbers<float>(distribution, key, parameters, *values, pool);
  }
  return xffi::Error::Success();
}

}  // namespace
}  // namespace torch_xla_lite::kernels

XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteRandomKeys, torch_xla_lite::kernels::MakeKeys,
                              xla::ffi::Ffi::Bind()
                                  .Arg<torch_xla_lite::kernels::Numbers>()
                                  .Ret<torch_xla_lite::kernels::Keys>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteRandomBits, torch_xla_lite::kernels::MakeBits,
                              xla::ffi::Ffi::Bind()
                                  .Arg<torch_xla_lite::kernels::Key>()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Ctx<xla::ffi::ThreadPool>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteKeepMask, torch_xla_lite::kernels::MakeMask,
                              xla::ffi::Ffi::Bind()
                                  .Arg<torch_xla_lite::kernels::Key>()
                                  .Ret<torch_xla_lite::kernels::Mask>()
                                  .Attr<int64_t>("threshold")
                                  .Ctx<xla::ffi::ThreadPool>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(TorchXlaLiteDraw, torch_xla_lite::kernels::MakeDraw,
                              xla::ffi::Ffi::Bind()
                                  .Arg<torch_xla_lite::kernels::Key>()
                                  .RemainingArgs()
                                  .Ret<xla::ffi::AnyBuffer>()
                                  .Attr<int64_t>("distribution")
                                  .Ctx<xla::ffi::ThreadPool>());
