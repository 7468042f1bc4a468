#include "torch_xla_lite/csrc/ffi/parts.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace torch_xla_lite::ffi {
namespace {

// Shared with tasks that begin after all parts are done.
struct Shared {
  std::atomic<size_t> next = 0;
  std::atomic<size_t> done = 0;
  std::vector<std::exception_ptr> errors;
};

// Runs parts until each is taken. `run` is used for parts only, which the caller waits for.
void TakeParts(Shared& shared, const std::function<void(size_t)>& run) {
  const size_t count = shared.errors.size();
  for (size_t part; (part = shared.next.fetch_add(1)) < count;) {
    try {
      run(part);
    } catch (...) {
      shared.errors[part] = std::current_exception();
    }
    shared.done.fetch_add(1);
    shared.done.notify_one();
  }
}

}  // namespace

Rows RowsOf(size_t part, size_t count, int64_t rows) {
  const int64_t size = rows / static_cast<int64_t>(count);
  const int64_t longer = rows % static_cast<int64_t>(count);
  const auto before = static_cast<int64_t>(part);
  return {before * size + std::min(before, longer), size + (before < longer)};
}

void RunParts(size_t count, const std::function<void(std::function<void()>)>& schedule,
              const std::function<void(size_t)>& run) {
  const auto shared = std::make_shared<Shared>();
  shared->errors.resize(count);
  try {
    for (size_t i = 1; i < count; ++i) schedule([shared, &run] { TakeParts(*shared, run); });
  } catch (const std::bad_alloc&) {
    // Tasks that were scheduled use `run`. What they leave is run here.
  }
  TakeParts(*shared, run);
  for (size_t done; (done = shared->done.load()) < count;) shared->done.wait(done);
  for (const std::exception_ptr& error : shared->errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace torch_xla_lite::ffi
