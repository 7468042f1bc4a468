// What the compiler returns: an executable, or one that is compiled in the background.

#ifndef TORCH_XLA_LITE_CSRC_PYTHON_EXECUTABLE_H_
#define TORCH_XLA_LITE_CSRC_PYTHON_EXECUTABLE_H_

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/placement.h"
#include "torch_xla_lite/csrc/ir/ref.h"
#include "torch_xla_lite/csrc/python/description.h"
#include "torch_xla_lite/csrc/python/dropped.h"
#include "torch_xla_lite/csrc/runtime/executor.h"

namespace torch_xla_lite::python {

// How often each executable has run, and the seconds of that with waiting for its results, in the
// order in which they were compiled.
std::vector<std::pair<uint64_t, double>> Executions();

// Adds to the seconds of an executable. With Python's lock.
void NoteSeconds(size_t number, double seconds);

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

class PyExecutable final : public runtime::Executable {
 public:
  // compiled: what `compile` returned.
  explicit PyExecutable(const pybind11::tuple& compiled);
  ~PyExecutable() override { Drop(callable_.release().ptr()); }
  bool is_loaded() const override { return is_loaded_; }
  size_t number() const { return number_; }
  // Of a program for a mesh, where it takes its arguments and leaves its results; otherwise empty.
  const std::vector<ir::Placement>& leaf_placements() const { return leaf_placements_; }
  const std::vector<ir::Placement>& root_placements() const { return root_placements_; }
  // Returns one array for each root.
  pybind11::sequence Call(const std::vector<PyObject*>& arguments) const;
  // Whether any has run: it may have checks, which are reported. With Python's lock.
  static bool has_run() { return has_run_; }

 private:
  inline static bool has_run_ = false;
  pybind11::object callable_;
  std::vector<ir::Placement> leaf_placements_, root_placements_;
  const size_t number_;
  const bool is_loaded_;
};

// compile: that of compiler.Compiler, which has the meaning of the other arguments.
ir::Ref<runtime::Executable> Compiled(const pybind11::function& compile, const Description& graph,
                                      const pybind11::object& structure);

class PyCompilation final : public runtime::Compilation {
 public:
  // A concurrent.futures.Future.
  explicit PyCompilation(pybind11::object future) : future_(std::move(future)) {}
  ~PyCompilation() override;
  bool IsDone() override;
  ir::Ref<runtime::Executable> Result() override;

 private:
  pybind11::object future_;
};

}  // namespace torch_xla_lite::python

#endif  // TORCH_XLA_LITE_CSRC_PYTHON_EXECUTABLE_H_
