// What exceptions say that pass through C++, of Python or not.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_EXCEPTIONS_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_EXCEPTIONS_H_

#include <exception>

namespace torch_xla_lite::python {

// Also a warning that Python's filter has made an error: no step is to blame, and it is not lost.
bool IsInterrupt(const std::exception& error);
// An interrupt, or lack of memory.
bool IsTransient(const std::exception& error);
bool IsNotImplemented(const std::exception& error);

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_EXCEPTIONS_H_
