#include "torch_xla_lite/csrc/runtime/mappings.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>

namespace torch_xla_lite::runtime {

bool MappingsAreScarce() {
  int64_t allowed = 0;
  if (!(std::ifstream("/proc/sys/vm/max_map_count") >> allowed)) return false;
  // A line for each.
  std::ifstream mappings("/proc/self/maps");
  using Bytes = std::istreambuf_iterator<char>;
  return std::count(Bytes(mappings), Bytes(), '\n') > allowed / 2;
}

}  // namespace torch_xla_lite::runtime
