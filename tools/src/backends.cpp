// quire backends: which backends there are and what each can do.
#include "backend_words.h"
#include "commands.h"

#include <quire/registry.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>

namespace quire::tools {

namespace {

using nlohmann::json;

std::vector<std::string> dtype_names(std::uint64_t bits) {
  std::vector<std::string> names;
  for (std::int32_t d = 0; d < QUIRE_DTYPE_COUNT; ++d) {
    if ((bits >> d & 1U) != 0) names.emplace_back(name(static_cast<DType>(d)));
  }
  return names;
}

// The ops whose arithmetic a contract describes; the others are exact everywhere.
constexpr quire_op rounding_ops[] = {QUIRE_OP_ATTEND, QUIRE_OP_GDN_PREFILL, QUIRE_OP_GDN_DECODE, QUIRE_OP_GDN_VERIFY};

// Of an op that the backend has, on float32.
std::optional<quire_contract> contract_of(const Backend& backend, quire_op op) {
  try {
    return backend.contract(op, DType::f32, DType::f32);
  } catch (const Error&) {
    return std::nullopt;  // whatever one plugin answers, the others are listed
  }
}

json contract_json(const quire_contract& contract) {
  return {{"u_product", contract.u_product},
          {"u_accumulate", contract.u_accumulate},
          {"u_store", contract.u_store},
          {"u_exp", contract.u_exp},
          {"decay", contract.decay_from_log_sums != 0 ? "log_sums" : "multiplied"},
          {"chunk_length", contract.chunk_length},
          {"batch_invariant", contract.batch_invariant != 0}};
}

json backend_json(const BackendStatus& status) {
  json entry{{"name", status.name}, {"status", status.available ? "available" : "unavailable"}, {"path", status.path}};
  if (!status.available) {
    entry["reason"] = status.reason;
    entry["fault"] = name(status.fault);
    return entry;
  }
  const Backend& backend = *status.backend;
  entry["version"] = backend.version();
  entry["abi_version"] = backend.table().abi_version;
  entry["semantics_version"] = backend.table().semantics_version;
  entry["description"] = backend.description();
  entry["rank"] = backend.info().rank;
  entry["build"] = build_names(backend.info().build);
  for (const DeviceReport& device : status.devices) entry["devices"].push_back(device_json(device));
  entry["dtypes"] = {{"extend", dtype_names(backend.info().dtypes)}, {"inputs", dtype_names(backend.info().float_dtypes)}, {"states", dtype_names(backend.info().state_dtypes)}};
  for (const quire_op op : rounding_ops) {
    const std::optional<quire_contract> contract = contract_of(backend, op);
    entry["contract"][std::string(op_name(op))] = contract ? contract_json(*contract) : json();
  }
  return entry;
}

void print_text(const BackendStatus& status) {
  if (!status.available) {
    fmt::print("{:<12} unavailable  {}\n{:<12} path         {}\n", printable(status.name), printable(status.reason), "", printable(status.path));
    return;
  }
  const Backend& backend = *status.backend;
  const auto line = [](std::string_view what, const std::string& text) { fmt::print("{:<12} {:<12} {}\n", "", what, text); };
  fmt::print("{:<12} available    {}\n", status.name, printable(backend.description()));
  line("version", fmt::format("{} (ABI {}, semantics {}{}{})", backend.version(), backend.table().abi_version, backend.table().semantics_version,
                              backend.info().build != 0 ? ", " : "", fmt::join(build_names(backend.info().build), "+")));
  for (const DeviceReport& device : status.devices) line("device", device_words(device));
  line("extend", fmt::format("{}", fmt::join(dtype_names(backend.info().dtypes), " ")));
  line("q, k, v", fmt::format("{}", fmt::join(dtype_names(backend.info().float_dtypes), " ")));
  line("states", fmt::format("{}", fmt::join(dtype_names(backend.info().state_dtypes), " ")));
  for (const quire_op op : rounding_ops) {
    const std::optional<quire_contract> contract = contract_of(backend, op);
    line("contract", !contract ? fmt::format("{}: none on f32", op_name(op))
                               : fmt::format("{}: products {:.3g}, sums {:.3g}, exp {:.3g}, stored {:.3g}, chunks of {}{}", op_name(op), contract->u_product,
                                             contract->u_accumulate, contract->u_exp, contract->u_store, contract->chunk_length,
                                             contract->batch_invariant != 0 ? ", batch-invariant" : ""));
  }
  line("path", printable(status.path));
}

}  // namespace

void add_backends(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("backends", "List the backends: status, devices, versions, dtypes, numerics contract, path");
  const auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "Print one JSON array");
  command->callback([as_json, &exit_code] {
    exit_code = 0;
    if (*as_json) {
      json list = json::array();
      for (const BackendStatus& status : backends()) list.push_back(backend_json(status));
      fmt::print("{}\n", json_text(list));
      return;
    }
    for (const BackendStatus& status : backends()) print_text(status);
  });
}

}  // namespace quire::tools
