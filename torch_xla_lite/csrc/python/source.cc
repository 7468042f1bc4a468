#include "torch_xla_lite/csrc/python/source.h"

#include <map>
#include <optional>
#include <vector>

#include "torch_xla_lite/csrc/ir/mutex.h"
#include "torch_xla_lite/csrc/ir/thread_annotations.h"
#include "torch_xla_lite/csrc/python/autograd_node.h"
#include "torch_xla_lite/csrc/python/untraced.h"
#include "torch_xla_lite/csrc/record/record.h"

namespace py = pybind11;

namespace torch_xla_lite::python {
namespace {

ir::Mutex mutex;
std::vector<std::string>& Texts() LITE_REQUIRES(mutex) {
  static auto* texts = new std::vector<std::string>{""};
  return *texts;
}

// Guarded by Python's lock. Never destroyed: ops may be recorded while the interpreter shuts down.
py::object& Describe() {
  static auto* describe = new py::object;
  return *describe;
}

py::object Tuple(const std::optional<NodeId>& node) {
  return node ? py::make_tuple(node->thread, node->number) : py::object(py::none());
}

// A number for the line that is running now.
uint32_t CurrentSource() {
  const Untraced python;
  const auto text = Describe()(Tuple(LastNode()), Tuple(RunningNode())).cast<std::string>();
  static auto* numbers = new std::map<std::string, uint32_t>{{"", 0}};
  const ir::MutexLock lock(&mutex);
  const auto [it, is_new] = numbers->emplace(text, static_cast<uint32_t>(Texts().size()));
  if (is_new) Texts().push_back(text);
  return it->second;
}

}  // namespace

void SetDescribe(const py::object& describe) {
  Describe() = describe;
  record::SetSourceHook(describe.is_none() ? nullptr : &CurrentSource);
}

std::string SourceText(uint32_t source) {
  const ir::MutexLock lock(&mutex);
  return Texts()[source];
}

}  // namespace torch_xla_lite::python
