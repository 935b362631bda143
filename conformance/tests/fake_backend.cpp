// A backend for tests.
#include "fake_backend.h"

#include <quire/host_backend.h>
#include <quire/tensor.h>

#include <stdexcept>

#include "judge/sandbox.h"

namespace quire::conformance {

namespace {

FakeBackend* current = nullptr;

std::byte* element_of(const Call& call, std::string_view name, std::int64_t n) {
  const quire_tensor* tensor = call.tensor(name);
  if (tensor == nullptr) throw std::logic_error("no tensor " + std::string(name));
  std::byte* found = nullptr;
  std::int64_t at = 0;
  for_each_element(*tensor, size_of(static_cast<DType>(tensor->dtype)), [&](std::byte* element) {
    if (at++ == n) found = element;
  });
  if (found == nullptr) throw std::logic_error("no element " + std::to_string(n));
  return found;
}

}  // namespace

quire_backend_table FakeBackend::table() {
  quire_backend_table table = quire::backend("reference").table();
  table.describe = [](quire_backend_info* info) {
    const quire_status status = quire::backend("reference").table().describe(info);
    info->name = "fake";
    return status;
  };
  table.last_error = [] { return current->message.c_str(); };
  table.supports = [](quire_op op, const void* args) {
    return current->supports ? current->supports(op, args) : quire::backend("reference").table().supports(op, args);
  };
  table.run = [](quire_stream* stream, quire_op op, const void* args, void* workspace, std::size_t bytes) {
    ++current->runs;
    if (current->run) return current->run(op, args);
    const Call call(op, args);
    if (current->before) current->before(call);
    const quire_status status = quire::backend("reference").table().run(stream, op, args, workspace, bytes);
    if (current->after) current->after(call);
    return status;
  };
  table.capture = [](quire_device, const quire_call* calls, std::int32_t count, quire_step** step) {
    return host::capture(calls, count, step, current->backend_.table().supports);
  };
  table.launch = [](quire_stream*, quire_step* step, const quire_tensor* const* tensors, std::int32_t count) {
    return host::launch(step, tensors, count, [](quire_op op, const void* args) { return current->backend_.table().run(nullptr, op, args, nullptr, 0); });
  };
  table.contract = [](quire_op, quire_dtype, quire_dtype, quire_contract* contract) {
    *contract = current->contract.value_or(float32_contract());
    return current->contract_status;
  };
  return table;
}

FakeBackend::FakeBackend() : table_(table()), backend_(&table_, "(test)") { current = this; }
FakeBackend::~FakeBackend() { current = nullptr; }

quire_contract float32_contract() {
  constexpr double u = 0x1p-24;
  return {sizeof(quire_contract), u, u, u, 2 * u, 0, 1, 1};
}

void change_element(const Call& call, std::string_view tensor, std::int64_t n) {
  std::byte* element = element_of(call, tensor, n);
  *element = std::byte(std::to_integer<unsigned>(*element) + 1U);
}

void set_element(const Call& call, std::string_view tensor, std::int64_t n, double number) {
  write_number(static_cast<DType>(call.tensor(tensor)->dtype), element_of(call, tensor, n), number);
}

}  // namespace quire::conformance
