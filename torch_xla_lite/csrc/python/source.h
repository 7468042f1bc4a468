// Remembers where the user's program recorded an op, for messages and traces
// (TORCH_XLA_LITE_IR_DEBUG=1).
//
//   SetDescribe(describe);        // debug/recorded_lines.py
//   SourceText(node.source);      // "net.py:9 in forward (module Net.layers.0)"; "" if not known

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_SOURCE_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_SOURCE_H_

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>

namespace torch_xla_lite::python {

// What is called for each op that is recorded, or None.
void SetDescribe(const pybind11::object& describe);

std::string SourceText(uint32_t source);

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_SOURCE_H_
