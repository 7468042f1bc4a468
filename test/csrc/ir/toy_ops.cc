#include "test/csrc/ir/toy_ops.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <utility>

#include "torch_xla_lite/csrc/ir/signature.h"

namespace torch_xla_lite::ir::toy {
namespace {

// As for recorded ops, the words of a signature are the op name and the operand shapes.
const Signature* SignatureOf(const std::string& op, const std::vector<const Shape*>& operands) {
  static auto* mutex = new std::mutex;
  static auto* table = new SignatureTable;
  static auto* op_numbers = new std::map<std::string, uint64_t>;
  const std::lock_guard lock(*mutex);
  std::vector<uint64_t> words{op_numbers->emplace(op, op_numbers->size()).first->second};
  for (const Shape* shape : operands) words.push_back(reinterpret_cast<uint64_t>(shape));
  if (const Signature* known = table->Find(words)) return known;
  auto signature = MakeRef<Signature>(op, words, Outputs(op, operands));
  for (const Shape* shape : operands) signature->Keep(shape);
  signature->is_zeros = op == "zeros";
  return table->Insert(std::move(signature));
}

template <typename Combine>
Data ElementWise(const Data& a, const Data& b, Combine combine) {
  if (a.size() != b.size()) throw std::logic_error("operands of different sizes");
  Data result(a.size());
  std::ranges::transform(a, b, result.begin(), combine);
  return result;
}

Data Reversed(Data data) {
  std::ranges::reverse(data);
  return data;
}

}  // namespace

const Shape* Vector(size_t size) {
  static auto* mutex = new std::mutex;
  static auto* shapes = new std::map<size_t, Ref<const Shape>>;
  const std::lock_guard lock(*mutex);
  Ref<const Shape>& shape = (*shapes)[size];
  if (!shape) shape = Shape::Of(kInt64, {static_cast<int64_t>(size)});
  return shape.get();
}

Value Leaf(Data data) {
  const Shape* shape = Vector(data.size());
  return {Node::Leaf(shape, Ref<Buffer>::Take(new HostBuffer(std::move(data)))), 0};
}

Value Call(std::string_view op, std::vector<Value> operands, std::vector<uint64_t> scalars) {
  std::vector<const Shape*> shapes;
  for (const Value& operand : operands) shapes.push_back(operand.shape());
  return {Node::Create(SignatureOf(std::string(op), shapes), operands, scalars), 0};
}

Value Result(const Value& value, uint32_t output) { return {value.node, output}; }

const Data& DataOf(const Value& value) {
  const auto* buffer = dynamic_cast<const HostBuffer*>(value.buffer());
  if (buffer == nullptr) throw std::logic_error("the value is pending");
  return buffer->data;
}

std::vector<Data> DataOf(std::span<const Value> values) {
  std::vector<Data> data;
  for (const Value& value : values) data.push_back(DataOf(value));
  return data;
}

std::vector<const Shape*> Outputs(const std::string& op, std::span<const Shape* const> operands) {
  if (op == "sum_difference") return {operands[0], operands[0]};
  if (op == "append") {
    return {Vector(static_cast<size_t>(operands[0]->NumElements() + operands[1]->NumElements()))};
  }
  if (op == "element") return {Vector(1)};
  if (op == "halves") {
    const Shape* half = Vector(operands[0]->NumElements() / 2);
    return {half, half};
  }
  return {operands[0]};
}

std::vector<Data> Compute(const std::string& op, std::span<const Data> operands,
                          std::span<const uint64_t> scalars) {
  if (operands.empty()) throw std::logic_error(op + " without operands");
  const Data& a = operands[0];
  if (op == "add") return {ElementWise(a, operands[1], std::plus<>())};
  if (op == "multiply") return {ElementWise(a, operands[1], std::multiplies<>())};
  if (op == "sum_difference") {
    return {ElementWise(a, operands[1], std::plus<>()),
            ElementWise(a, operands[1], std::minus<>())};
  }
  Data result = a;
  const auto middle = static_cast<Data::difference_type>(a.size() / 2);
  if (op == "plus") {
    for (uint64_t& element : result) element += scalars[0];
  } else if (op == "append") {
    result.insert(result.end(), operands[1].begin(), operands[1].end());
  } else if (op == "element") {
    result = {a.at(scalars[0])};
  } else if (op == "reversed") {
    result = Reversed(a);
  } else if (op == "halves") {
    return {Data(a.begin(), a.begin() + middle), Data(a.begin() + middle, a.end())};
  } else if (op == "zeros") {
    std::ranges::fill(result, 0);
  } else if (op == "fail") {
    throw std::runtime_error("this op fails");
  } else if (op == "lack") {
    throw std::bad_alloc();
  } else if (op != "refuse") {  // Which a compiler refuses, and an interpreter copies.
    throw std::logic_error("no such op: " + op);
  }
  return {result};
}

Data Written(const std::string& op, uint32_t output, Data base, const Data& value,
             std::span<const uint64_t> scalars) {
  if (op == "element") {
    base.at(scalars[0]) = value.at(0);
  } else if (op == "reversed") {
    base = Reversed(value);
  } else if (op == "halves") {
    std::ranges::copy(value,
                      base.begin() + static_cast<Data::difference_type>(output * value.size()));
  } else {
    throw std::logic_error("no view: " + op);
  }
  return base;
}

std::vector<Data> Interpret(const Description& description, std::span<const Data> leaves,
                            std::span<const uint64_t> scalars) {
  std::vector<std::vector<Data>> results;
  const auto at = [&](Position position) { return results.at(position.step).at(position.output); };
  const auto check = [](const Data& data, const Shape* shape) {
    if (Vector(data.size()) != shape) throw std::logic_error("a value has another shape");
  };
  for (const Step& step : description.steps) {
    if (step.kind == StepKind::kLeaf) {
      check(leaves.front(), step.leaf);
      results.push_back({leaves.front()});
      leaves = leaves.subspan(1);
      continue;
    }
    std::vector<Data> operands;
    for (const Position operand : step.operands) operands.push_back(at(operand));
    const auto numbers = scalars.first(step.num_scalars);
    scalars = scalars.subspan(step.num_scalars);
    const Signature& call = *step.signature;
    std::vector<Data> outputs;
    if (step.kind == StepKind::kWrite) {
      outputs = {Written(call.op, *call.written, operands[0], operands[1], numbers)};
    } else {
      outputs = Compute(call.op, operands, numbers);
    }
    for (size_t i = 0; i < outputs.size(); ++i) check(outputs[i], call.outputs[i]);
    results.push_back(std::move(outputs));
  }
  if (!leaves.empty() || !scalars.empty()) throw std::logic_error("arguments that no step takes");
  std::vector<Data> roots;
  for (const Position root : description.roots) roots.push_back(at(root));
  return roots;
}

}  // namespace torch_xla_lite::ir::toy
