// The random number generator of device jax.
//
// XLA's random functions are pure: the same key gives the same numbers. A generator is therefore
// only a pair (seed, offset): every random op takes the current pair, as a runtime parameter of the
// graph, and increases the offset by one. No numbers are drawn here, so recording a random op costs
// no more than recording any other op, and a new seed never recompiles.
//
//   DefaultGenerator().set_current_seed(0);                         // torch.jax.manual_seed(0)
//   RngState key = CheckJaxGenerator(generator).NextSeedOffset();   // the key of one random op
//
// Thread-safe: two threads never get the same (seed, offset) from one generator. The state has its
// own lock because callers inside torch already hold GeneratorImpl::mutex_ when they call some of
// these methods.

#ifndef TORCH_XLA_LITE_CSRC_DEVICE_GENERATOR_H_
#define TORCH_XLA_LITE_CSRC_DEVICE_GENERATOR_H_

#include <ATen/core/Generator.h>
#include <c10/core/GeneratorImpl.h>

#include <cstdint>
#include <mutex>
#include <optional>

namespace torch_xla_lite::device {

struct RngState {
  uint64_t seed;
  uint64_t offset;
};

class JaxGenerator final : public c10::GeneratorImpl {
 public:
  explicit JaxGenerator(uint64_t seed = c10::default_rng_seed_val);

  // The key of one random op. No other op gets the same one until the generator is seeded or its
  // state is set.
  RngState NextSeedOffset();

  RngState State() const;
  void SetState(RngState state);

  // As in every torch generator, seeding starts the sequence from its beginning.
  void set_current_seed(uint64_t seed) override;
  uint64_t current_seed() const override;
  uint64_t seed() override;  // seeds from the system's entropy
  void set_offset(uint64_t offset) override;
  uint64_t get_offset() const override;

  // The state as torch.Generator returns it: a CPU byte tensor of seed and offset, as on CUDA.
  void set_state(const c10::TensorImpl& new_state) override;
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override;

 private:
  JaxGenerator* clone_impl() const override;

  mutable std::mutex state_mutex_;
  RngState state_;
};

// The generator that random ops use when the caller passes none.
JaxGenerator& DefaultGenerator();

// The same as an at::Generator, for torch's hooks.
const at::Generator& DefaultGeneratorHandle();

// The generator that was passed to a random op, or the default one. Raises if it belongs to another
// device.
JaxGenerator& CheckJaxGenerator(const std::optional<at::Generator>& generator);

}  // namespace torch_xla_lite::device

#endif  // TORCH_XLA_LITE_CSRC_DEVICE_GENERATOR_H_
