#include "torch_xla_lite/csrc/python/source.h"

#include <pybind11/pybind11.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/python/autograd_node.h"

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

ir::Mutex mutex;
std::vector<std::string>& Texts() LITE_REQUIRES(mutex) {
  static auto* texts = new std::vector<std::string>{""};
  return *texts;
}

// Folders of torch and of this package, each ending in a slash. Written before the first
// CurrentSource().
std::vector<std::string>& LibraryFolders() {
  static auto* folders = new std::vector<std::string>;
  return *folders;
}

bool IsLibrary(const std::string& file) {
  // Other names in angle brackets are user code: <stdin>, <ipython-input-1>.
  if (file.starts_with("<frozen") || file.starts_with("<eval_with_key>")) return true;
  if (file.find("/torch_xla_lite/examples/") != std::string::npos) return false;
  return std::ranges::any_of(LibraryFolders(),
                             [&](const std::string& folder) { return file.starts_with(folder); });
}

std::string Text(py::handle object, const char* attribute) {
  return py::str(object.attr(attribute));
}

std::string Line(py::handle frame) {
  const py::object code = frame.attr("f_code");
  return Text(code, "co_filename") + ":" + Text(frame, "f_lineno") + " in " + Text(code, "co_name");
}

std::string FindUserLine() {
  py::object frame =
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame && !frame.is_none()) {
    if (!IsLibrary(Text(frame.attr("f_code"), "co_filename"))) {
      return Line(frame);
    }
    frame = frame.attr("f_back");
  }
  return "";
}

// The modules whose forward() is running, innermost first.
std::vector<py::object> RunningModules() {
  std::vector<py::object> modules;
  py::object frame =
      py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  for (; frame && !frame.is_none(); frame = frame.attr("f_back")) {
    const py::object code = frame.attr("f_code");
    if (Text(code, "co_name") == "_call_impl" &&
        Text(code, "co_filename").ends_with("torch/nn/modules/module.py")) {
      modules.push_back(frame.attr("f_locals")["self"]);
    }
  }
  return modules;
}

std::string NameWithin(const py::object& parent, const py::object& module) {
  for (const py::handle entry : parent.attr("named_modules")()) {
    const auto [name, found] = entry.cast<std::pair<std::string, py::object>>();
    if (found.is(module)) return name;
  }
  return module.attr("_get_name")().cast<std::string>();
}

// "Net.layers.0", or "" outside modules.
std::string ModulePath() {
  const std::vector<py::object> modules = RunningModules();
  if (modules.empty()) return "";
  std::string path = modules.back().attr("_get_name")().cast<std::string>();
  for (size_t i = modules.size() - 1; i > 0; --i) {
    path += "." + NameWithin(modules[i], modules[i - 1]);
  }
  return path;
}

// Which module an op with gradients belonged to, by the node of autograd that it made. Of the last
// nodes only, because these are names in messages and traces. Guarded by the GIL.
struct ModuleOfNode {
  NodeId node;
  std::string path;
};
ModuleOfNode& SlotOf(const NodeId& node) {
  static auto* slots = new std::vector<ModuleOfNode>(1 << 16);
  return (*slots)[node.number % slots->size()];
}

// Remembers the module of the op that is being recorded.
void NoteModule(const std::string& path) {
  const std::optional<NodeId> last = LastNode();
  if (!last) return;
  // If the op has gradients, its node is the last one. If not, that node has its own module
  // already.
  ModuleOfNode& slot = SlotOf(*last);
  if (slot.node != *last) slot = {*last, path};
}

// The module of the op whose gradient is being computed, or "".
std::string ModuleOfGradient() {
  const std::optional<NodeId> running = RunningNode();
  if (!running) return "";
  const ModuleOfNode& slot = SlotOf(*running);
  return slot.node == *running ? slot.path : "";
}

std::string Describe() {
  const std::string line = FindUserLine();
  std::string path = ModulePath();
  if (path.empty()) path = ModuleOfGradient();
  NoteModule(path);
  return path.empty() ? line : line + " (module " + path + ")";
}

}  // namespace

void FindLibraryFolders() {
  LibraryFolders().clear();
  for (const char* name : {"torch", "torch_xla_lite"}) {
    for (const py::handle path : py::module_::import(name).attr("__path__")) {
      LibraryFolders().push_back(path.cast<std::string>() + "/");
    }
  }
}

uint32_t CurrentSource() {
  const py::gil_scoped_acquire gil;
  const std::string text = Describe();
  static auto* numbers = new std::map<std::string, uint32_t>{{"", 0}};
  const ir::MutexLock lock(&mutex);
  const auto [it, is_new] = numbers->emplace(text, static_cast<uint32_t>(Texts().size()));
  if (is_new) Texts().push_back(text);
  return it->second;
}

std::string SourceText(uint32_t source) {
  const ir::MutexLock lock(&mutex);
  return Texts()[source];
}

}  // namespace torch_xla_lite::python
