// Finds the line of the user's program that records an op, and the module, for messages and traces
// (TORCH_XLA_LITE_IR_DEBUG=1).
//
//   FindLibraryFolders();
//   record::SetSourceHook(CurrentSource);
//   SourceText(node.source);      // "net.py:9 in forward (module Net.layers.0)"; "" if not known
//
// The line is that of the innermost Python frame outside torch and this package, the module that
// whose forward() is running. Autograd runs the backward pass on the thread that called backward()
// (CPU and jax), so its ops have the line of that call; their module is that of the op whose
// gradient they compute.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_SOURCE_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_SOURCE_H_

#include <cstdint>
#include <string>

namespace torch_xla_lite::python {

// Looks up where torch and this package are installed. Call it once, with the GIL held, before the
// first CurrentSource().
void FindLibraryFolders();

// A number for the line that is running now. Takes the GIL.
uint32_t CurrentSource();

std::string SourceText(uint32_t source);

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_SOURCE_H_
