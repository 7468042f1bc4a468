// Defers the release of Python objects that are dropped where the GIL must not be taken: on any
// thread, and under any lock of this project.
//
//   Drop(array);            // needs no lock
//   ReleaseDropped();       // later, with the GIL; the main thread does it, too, when it can
//
// A forked process keeps what it drops: jax's arrays would wait for threads that were not forked.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_DROPPED_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_DROPPED_H_

#include <Python.h>

namespace torch_xla_lite::python {

// Takes over a reference.
void Drop(PyObject* object);

// Requires the GIL.
void ReleaseDropped();

// This process may use the device, though it was forked: XLA had not started.
void UseInThisProcess();

// Whether this process was forked from the one that may use the device.
bool IsForked();

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_DROPPED_H_
