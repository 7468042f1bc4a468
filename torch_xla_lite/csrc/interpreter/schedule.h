// The order in which the steps of a plan (plan.h) run: what needs a result follows it, while the
// processor's cache has it.
//
// An optimizer updates lists of parameters: one call multiplies all, the next adds to all. Its
// steps become sequences, one for each parameter, whose intermediate results share a little memory.
//
//   std::vector<uint32_t> order = Schedule(accesses);    // order[0] is the step that runs first

#ifndef TORCH_XLA_LITE_CSRC_INTERPRETER_SCHEDULE_H_
#define TORCH_XLA_LITE_CSRC_INTERPRETER_SCHEDULE_H_

#include <cstdint>
#include <span>
#include <vector>

namespace torch_xla_lite::interpreter {

// What a step does to memories, which are numbers. A memory that it overwrites is in both.
struct Access {
  std::vector<uint32_t> reads;
  std::vector<uint32_t> writes;
  bool is_movable = false;     // Whether it may change places with other such steps.
  bool is_repeatable = false;  // Whether it writes what it writes again if the graph does.
};

std::vector<uint32_t> Schedule(std::span<const Access> steps);

}  // namespace torch_xla_lite::interpreter

#endif  // TORCH_XLA_LITE_CSRC_INTERPRETER_SCHEDULE_H_
