// Tells whether the process may soon run out of memory mappings.
//
// The code of an executable takes dozens of them, Linux allows a process 65,530 unless it is
// configured otherwise (vm.max_map_count), and XLA crashes when it gets no more.
//
//   if (MappingsAreScarce()) cache.DropOlderHalf();

#ifndef TORCH_XLA_LITE_CSRC_RUNTIME_MAPPINGS_H_
#define TORCH_XLA_LITE_CSRC_RUNTIME_MAPPINGS_H_

namespace torch_xla_lite::runtime {

// Whether more than half of them are in use; false where /proc does not tell. Takes 1 us for each.
bool MappingsAreScarce();

}  // namespace torch_xla_lite::runtime

#endif  // TORCH_XLA_LITE_CSRC_RUNTIME_MAPPINGS_H_
