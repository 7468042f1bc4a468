#include "torch_xla_lite/csrc/device/generator.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/CPUAllocator.h>
#include <c10/util/Exception.h>

#include <cstring>

namespace torch_xla_lite::device {
namespace {

constexpr int64_t kStateBytes = sizeof(RngState);

}  // namespace

JaxGenerator::JaxGenerator(uint64_t seed)
    : c10::GeneratorImpl(c10::Device(c10::DeviceType::PrivateUse1, 0),
                         c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
      state_{.seed = seed, .offset = 0} {}

RngState JaxGenerator::NextSeedOffset() {
  std::lock_guard<std::mutex> lock(state_mutex_);
  RngState now = state_;
  ++state_.offset;
  return now;
}

RngState JaxGenerator::State() const {
  std::lock_guard<std::mutex> lock(state_mutex_);
  return state_;
}

void JaxGenerator::SetState(RngState state) {
  std::lock_guard<std::mutex> lock(state_mutex_);
  state_ = state;
}

void JaxGenerator::set_current_seed(uint64_t seed) { SetState({.seed = seed, .offset = 0}); }

uint64_t JaxGenerator::current_seed() const { return State().seed; }

uint64_t JaxGenerator::seed() {
  uint64_t seed = c10::detail::getNonDeterministicRandom();
  set_current_seed(seed);
  return seed;
}

void JaxGenerator::set_offset(uint64_t offset) {
  std::lock_guard<std::mutex> lock(state_mutex_);
  state_.offset = offset;
}

uint64_t JaxGenerator::get_offset() const { return State().offset; }

void JaxGenerator::set_state(const c10::TensorImpl& new_state) {
  at::detail::check_rng_state(new_state);
  TORCH_CHECK(new_state.numel() == kStateBytes, "The RNG state of device jax has ", kStateBytes,
              " bytes (seed and offset), the one passed has ", new_state.numel(),
              ".\nPass a state that torch.jax.get_rng_state() or Generator.get_state() returned.");
  RngState state;
  std::memcpy(&state, new_state.data(), kStateBytes);
  SetState(state);
}

c10::intrusive_ptr<c10::TensorImpl> JaxGenerator::get_state() const {
  at::TensorBase bytes = at::detail::empty_generic({kStateBytes}, c10::GetCPUAllocator(),
                                                   c10::DispatchKeySet(c10::DispatchKey::CPU),
                                                   c10::ScalarType::Byte, std::nullopt);
  RngState state = State();
  std::memcpy(bytes.mutable_data_ptr(), &state, kStateBytes);
  return bytes.getIntrusivePtr();
}

JaxGenerator* JaxGenerator::clone_impl() const {
  auto* copy = new JaxGenerator();
  copy->SetState(State());
  return copy;
}

const at::Generator& DefaultGeneratorHandle() {
  // Never destroyed: threads of the autograd engine may still record while the process exits.
  static const auto* generator = new at::Generator(at::make_generator<JaxGenerator>());
  return *generator;
}

JaxGenerator& DefaultGenerator() { return *DefaultGeneratorHandle().get<JaxGenerator>(); }

JaxGenerator& CheckJaxGenerator(const std::optional<at::Generator>& generator) {
  if (!generator.has_value() || !generator->defined()) return DefaultGenerator();
  TORCH_CHECK(generator->device().type() == c10::DeviceType::PrivateUse1,
              "Expected a generator of device jax, found one of device ", generator->device(),
              ".\nMake one there:  torch.Generator(device='jax')");
  return *generator->get<JaxGenerator>();
}

}  // namespace torch_xla_lite::device
