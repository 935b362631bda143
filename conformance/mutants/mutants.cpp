// The mutants' tables: one function template, instantiated for each place in the bank.
#include "mutants.h"

#include "specification.h"

#include <array>
#include <stdexcept>
#include <utility>

namespace quire::conformance {

const std::vector<std::byte>& Scratch::keep(const quire_tensor& tensor) {
  std::int64_t extent = 1;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (tensor.shape[axis] == 0) extent = 0;
    extent += extent > 0 ? (tensor.shape[axis] - 1) * tensor.strides[axis] : 0;
  }
  const auto* data = static_cast<const std::byte*>(tensor.data);
  kept.emplace_back(data, data + extent * size_of(static_cast<DType>(tensor.dtype)));
  return kept.back();
}

namespace {

const std::vector<Specification>& bank() {
  static const std::vector<Specification> all = [] {
    std::vector<Specification> specifications;
    for (const auto& part :
         {index_mutants(), pool_mutants(), attention_mutants(), rule_mutants(), state_mutants(), draft_mutants(), backend_mutants(), step_mutants()}) {
      specifications.insert(specifications.end(), part.begin(), part.end());
    }
    return specifications;
  }();
  return all;
}

quire_status run_mutant(const Specification& mutant, quire_op op, const void* args) {
  honest::Setting setting{mutant.options, mutant.fault};
  if (mutant.vary != nullptr) mutant.vary(setting);
  if (mutant.change == nullptr && mutant.spoil == nullptr && mutant.skips == nullptr) return honest::run_with(op, args, setting);
  Call call(op, args);
  Scratch scratch;
  if (mutant.skips != nullptr && mutant.skips(call)) return QUIRE_OK;
  if (mutant.change != nullptr) mutant.change(call, scratch);
  const quire_status status = honest::run_with(op, call.args(), setting);
  if (status == QUIRE_OK && mutant.spoil != nullptr) mutant.spoil(call, scratch);
  return status;
}

template <std::size_t N>
struct Functions {
  static quire_status describe(quire_backend_info* info) { return honest::describe_as(bank()[N].name, bank()[N].mistake, info); }
  static quire_status run(quire_stream*, quire_op op, const void* args, void*, std::size_t) { return run_mutant(bank()[N], op, args); }
  // Every mutant claims plain float32, whatever it does.
  static quire_status contract(quire_op op, quire_dtype, quire_dtype, quire_contract* contract) {
    return honest::contract_of({}, op, contract);
  }
  static quire_status run_call(quire_op op, const void* args) { return run_mutant(bank()[N], op, args); }
  static quire_status capture(quire_device, const quire_call* calls, std::int32_t count, quire_step** step) {
    return capture_mutant(bank()[N].step_fault, calls, count, step, run_call);
  }
  static quire_status launch(quire_stream*, quire_step* step, const quire_tensor* const* tensors, std::int32_t) {
    return launch_mutant(bank()[N].step_fault, step, tensors, run_call);
  }
  static quire_backend_table table() {
    quire_backend_table table = honest::host_table<describe, honest::supports_host, run, contract>();
    if (N < bank().size() && bank()[N].step_fault != StepFault::none) {
      table.capture = capture;
      table.launch = launch;
      table.step_free = free_mutant_step;
    }
    return table;
  }
};

constexpr std::size_t most_mutants = 256;

template <std::size_t... N>
std::array<quire_backend_table, sizeof...(N)> make_tables(std::index_sequence<N...>) {
  return {Functions<N>::table()...};
}

}  // namespace

const std::vector<Mutant>& mutants() {
  static const std::vector<Mutant> all = [] {
    static const auto tables = make_tables(std::make_index_sequence<most_mutants>());
    if (bank().size() > tables.size()) throw std::length_error("more mutants than tables");
    std::vector<Mutant> list;
    for (const Specification& mutant : bank())
      list.push_back({mutant.name, mutant.mistake, mutant.laws, &tables[list.size()], mutant.needs});
    return list;
  }();
  return all;
}

}  // namespace quire::conformance
