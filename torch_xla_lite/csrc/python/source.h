// Where in the user's program an op was recorded, for messages (TORCH_XLA_LITE_IR_DEBUG=1).
//
//   FindLibraryFolders();
//   dispatch::SetSourceHook(CurrentSource);
//   SourceText(node.source);      // "train.py:41 in step", or "" when it is not known
//
// The innermost Python frame outside torch and this package counts. In the backward pass there is
// none: autograd runs it on a thread of its own.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_SOURCE_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_SOURCE_H_

#include <cstdint>
#include <string>

namespace torch_xla_lite::python {

// Asks Python where torch and this package are installed. To be called once, with Python's lock
// held, before the first CurrentSource().
void FindLibraryFolders();

// A number for the line that is running now; takes Python's lock.
uint32_t CurrentSource();

std::string SourceText(uint32_t source);

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_SOURCE_H_
