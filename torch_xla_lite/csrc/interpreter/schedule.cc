#include "torch_xla_lite/csrc/interpreter/schedule.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace torch_xla_lite::interpreter {
namespace {

// Steps that may change places: each follows those on whose memory it depends.
class Movable {
 public:
  explicit Movable(std::span<const Access> steps)
      : needed_(steps.size()), is_needed_(steps.size()), is_done_(steps.size()) {
    struct Users {
      std::vector<uint32_t> readers;  // Since it was written.
      std::vector<uint32_t> writer;   // None or one.
    };
    std::unordered_map<uint32_t, Users> users;
    for (uint32_t i = 0; i < steps.size(); ++i) {
      for (const uint32_t memory : steps[i].reads) {
        Users& of = users[memory];
        Need(i, of.writer);
        of.readers.push_back(i);
      }
      for (const uint32_t memory : steps[i].writes) {
        Users& of = users[memory];
        Need(i, of.writer);
        Need(i, of.readers);
        of = {{}, {i}};
      }
    }
  }

  // Appends the steps, whose numbers begin with `first`: before each that no other needs what it
  // needs itself.
  void AppendTo(std::vector<uint32_t>* order, uint32_t first) {
    std::vector<uint32_t> waiting;
    for (uint32_t last = 0; last < needed_.size(); ++last) {
      if (!is_needed_[last]) waiting.push_back(last);
      while (!waiting.empty()) {
        const uint32_t step = waiting.back();
        const auto next =
            std::ranges::find_if(needed_[step], [&](uint32_t k) { return !is_done_[k]; });
        if (next != needed_[step].end()) {
          waiting.push_back(*next);
          continue;
        }
        waiting.pop_back();
        if (!is_done_[step]) order->push_back(first + step);
        is_done_[step] = true;
      }
    }
  }

 private:
  void Need(uint32_t step, std::span<const uint32_t> others) {
    for (const uint32_t other : others) {
      if (other == step) continue;
      needed_[step].push_back(other);
      is_needed_[other] = true;
    }
  }

  std::vector<std::vector<uint32_t>> needed_;
  std::vector<bool> is_needed_;
  std::vector<bool> is_done_;
};

}  // namespace

std::vector<uint32_t> Schedule(std::span<const Access> steps) {
  std::vector<uint32_t> order;
  while (order.size() < steps.size()) {
    const auto first = static_cast<uint32_t>(order.size());
    const auto rest = steps.subspan(first);
    const auto end = std::ranges::find(rest, false, &Access::is_movable) - rest.begin();
    if (end == 0) order.push_back(first);
    Movable(rest.first(end)).AppendTo(&order, first);
  }
  return order;
}

}  // namespace torch_xla_lite::interpreter
