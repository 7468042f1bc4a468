// Python's lock, with the tracer of torch.compile off on this thread.
//
//   const Untraced python;
//   compile_(graph);    // is run, and not traced
//
// After a graph break torch.compile looks at each Python function that begins, also at those that
// C++ calls: it would trace the compiler and jax like the user's code.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_UNTRACED_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_UNTRACED_H_

#include <pybind11/pybind11.h>

namespace torch_xla_lite::python {

class Untraced {
 public:
  Untraced() {
    // While it is on anywhere, it has replaced the function that runs frames.
    if (_PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get()) !=
        _PyEval_EvalFrameDefault) {
      before_ = Exchange(pybind11::none());
    }
  }
  ~Untraced() {
    if (before_) Exchange(before_);
  }
  Untraced(const Untraced&) = delete;
  Untraced& operator=(const Untraced&) = delete;

 private:
  // Sets what is called before a frame runs, or None. Returns what was set.
  static pybind11::object Exchange(const pybind11::object& callback) {
    return pybind11::module_::import("torch._C")
        .attr("_dynamo")
        .attr("eval_frame")
        .attr("set_eval_frame")(callback);
  }

  const pybind11::gil_scoped_acquire gil_;
  pybind11::object before_;
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_UNTRACED_H_
