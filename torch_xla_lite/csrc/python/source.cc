#include "torch_xla_lite/csrc/python/source.h"

#include <pybind11/pybind11.h>

#include <map>
#include <mutex>
#include <vector>

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

std::mutex mutex;
std::vector<std::string>& Texts() {
  static auto* texts = new std::vector<std::string>{""};
  return *texts;
}

bool IsLibrary(const std::string& file) {
  if (file.starts_with("<")) return true;
  if (file.find("/torch_xla_lite/examples/") != std::string::npos) return false;
  return file.find("/torch/") != std::string::npos ||
         file.find("/torch_xla_lite/") != std::string::npos;
}

std::string Describe(py::handle frame) {
  const py::object code = frame.attr("f_code");
  return code.attr("co_filename").cast<std::string>() + ":" +
         std::to_string(frame.attr("f_lineno").cast<int>()) + " in " +
         code.attr("co_name").cast<std::string>();
}

std::string FindUserLine() {
  py::object frame =
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && !frame.is_none()) {
    if (!IsLibrary(frame.attr("f_code").attr("co_filename").cast<std::string>())) {
      return Describe(frame);
    }
    frame = frame.attr("f_back");
  }
  return "";
}

}  // namespace

uint32_t CurrentSource() {
  const py::gil_scoped_acquire gil;
  const std::string text = FindUserLine();
  static auto* numbers = new std::map<std::string, uint32_t>{{"", 0}};
  const std::lock_guard lock(mutex);
  const auto [it, is_new] = numbers->emplace(text, static_cast<uint32_t>(Texts().size()));
  if (is_new) Texts().push_back(text);
  return it->second;
}

std::string SourceText(uint32_t source) {
  const std::lock_guard lock(mutex);
  return Texts()[source];
}

}  // namespace torch_xla_lite::python
