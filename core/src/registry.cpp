// The registry: asks each backend for its table and keeps the answer, good or bad.
#include <quire/call.h>
#include <quire/registry.h>

#include "discovery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace quire {

namespace {

constexpr std::array<std::string_view, QUIRE_OP_COUNT> op_names = {"positions",  "mask",       "advance",    "extend",            "attend",
                                                                   "gdn_prefill", "gdn_decode", "gdn_verify", "gdn_prefill_slots", "gdn_decode_slots"};

ErrorCode code_of(quire_status status) {
  return status >= QUIRE_INVALID_ARGUMENT && status <= QUIRE_INTERNAL ? static_cast<ErrorCode>(status) : ErrorCode::internal;
}

BackendStatus status_of(quire_backend_query_fn query, const std::string& path) {
  BackendStatus status;
  status.path = path;
  try {
    detail::Accepted accepted = detail::accept(query, path, status.asked);
    status.fault = accepted.fault;
    status.reason = accepted.reason;
    if (accepted.backend == nullptr) {
      status.name = path;
      return status;
    }
    Backend& backend = *accepted.backend;
    status.name = backend.name();
    status.abi_version = backend.table().abi_version;
    status.semantics_version = backend.table().semantics_version;
    status.version = backend.version();
    status.description = backend.description();
    status.driver = backend.info().driver != nullptr ? backend.info().driver : "";
    status.build = backend.info().build;
    status.rank = backend.info().rank;
    for (const quire_device_info& device : backend.devices()) {
      status.devices.push_back({device.device.type, device.device.id, device.name, device.memory_bytes});
    }
    if (status.devices.empty()) {
      status.fault = PluginFault::no_device;
      status.reason = "no device";
      return status;
    }
    status.available = true;
    status.backend = accepted.backend.release();  // lives as long as the process
  } catch (const Error& error) {
    if (status.name.empty()) status.name = status.path;
    status.fault = error.code() == ErrorCode::unavailable ? PluginFault::unavailable : PluginFault::bad_answer;
    status.reason = error.what();
  }
  return status;
}

// The backend's failure as an error. A message that begins with a name and a colon names the argument.
[[noreturn]] void raise(quire_status status, std::string_view text, std::string_view what) {
  const std::string message = text.empty() ? fmt::format("{} failed", what) : std::string(text);
  const std::size_t colon = message.find(": ");
  const bool named = status == QUIRE_INVALID_ARGUMENT && colon != std::string::npos && message.find(' ') > colon;
  throw Error(code_of(status), named ? message.substr(0, colon) : std::string(what), message);
}

// Never destroyed: backends are used until the process ends.
const std::vector<BackendStatus>& built_in() {
  static const auto* const found = [] {
    auto* all = new std::vector<BackendStatus>;
    for (const quire_backend_query_fn query : detail::built_in_backends()) all->push_back(status_of(query, "(built in)"));
    return all;
  }();
  return *found;
}

// The available one of that name, else the first that can't be used.
const BackendStatus* named(const std::vector<BackendStatus>& all, std::string_view name) {
  const BackendStatus* found = nullptr;
  for (const BackendStatus& status : all) {
    if (status.name != name) continue;
    if (status.available) return &status;
    if (found == nullptr) found = &status;
  }
  return found;
}

}  // namespace

std::string_view op_name(quire_op op) {
  return op >= 0 && op < QUIRE_OP_COUNT ? op_names[static_cast<std::size_t>(op)] : std::string_view("unknown op");
}

Backend::Backend(const quire_backend_table* table, std::string path) : table_(table), path_(std::move(path)) {
  info_.struct_size = sizeof info_;
  require(table_->describe(&info_), "describe");
}

void Backend::require(quire_status status, std::string_view what) const {
  if (status == QUIRE_OK) return;
  const char* text = table_->last_error();
  raise(status, text != nullptr ? text : "", what);
}

quire_device_info Backend::first_device() const {
  quire_device_info info{};
  info.struct_size = sizeof info;
  require(table_->device_info(0, &info), "device_info");
  return info;
}

std::vector<quire_device_info> Backend::devices() const {
  std::int32_t count = 0;
  require(table_->device_count(&count), "device_count");
  std::vector<quire_device_info> devices(static_cast<std::size_t>(count > 0 ? count : 0));
  for (std::int32_t i = 0; i < count; ++i) {
    devices[static_cast<std::size_t>(i)].struct_size = sizeof(quire_device_info);
    require(table_->device_info(i, &devices[static_cast<std::size_t>(i)]), "device_info");
  }
  return devices;
}

quire_contract Backend::contract(quire_op op, DType input, DType state) const {
  quire_contract contract{};
  contract.struct_size = sizeof contract;
  require(table_->contract(op, static_cast<quire_dtype>(input), static_cast<quire_dtype>(state), &contract), "contract");
  return contract;
}

std::string Backend::unsupported_reason(quire_op op, const void* args) const {
  const quire_status status = table_->supports(op, args);
  if (status == QUIRE_OK) return {};
  if (status != QUIRE_UNSUPPORTED) require(status, op_name(op));
  const char* reason = table_->last_error();
  return reason != nullptr && *reason != '\0' ? reason : "it gives no reason";
}

void Backend::run(quire_stream* stream, quire_op op, const void* args, std::optional<quire_device> device) const {
  if (const std::string reason = unsupported_reason(op, args); !reason.empty()) {
    throw Error(ErrorCode::unsupported, std::string(op_name(op)), fmt::format("{}: unsupported by backend {}: {}", op_name(op), name(), reason));
  }
  std::size_t bytes = 0;
  require(table_->workspace(op, args, &bytes), op_name(op));
  if (bytes == 0) return require(table_->run(stream, op, args, nullptr, 0), op_name(op));
  if (!device) {
    device = first_device().device;
    const Call call(op, args);
    for (const CallTensor& entry : call.tensors()) {
      if (entry.tensor->device.type != QUIRE_DEVICE_CPU) device = entry.tensor->device;
    }
  }
  void* memory = nullptr;
  require(table_->allocate(*device, stream, bytes, &memory), "workspace");
  const quire_status ran = table_->run(stream, op, args, memory, bytes);
  const std::string message = ran == QUIRE_OK ? std::string() : table_->last_error();
  const quire_status freed = table_->free(*device, stream, memory);
  if (ran != QUIRE_OK) raise(ran, message, op_name(op));
  require(freed, "workspace");
}

const Discovery& discovery() {
  static const auto* const found = [] {
    PluginPlaces places = plugin_places();
    for (const BackendStatus& status : built_in()) places.taken_names.push_back(status.name);
    return new Discovery(discover(std::move(places)));
  }();
  return *found;
}

const std::vector<BackendStatus>& backends() {
  static const auto* const all = [] {
    const std::vector<BackendStatus>& plugins = discovery().plugins;
    auto* both = new std::vector<BackendStatus>(built_in());
    both->insert(both->end(), plugins.begin(), plugins.end());
    return both;
  }();
  return *all;
}

const Backend& backend(std::string_view name) {
  const BackendStatus* status = named(built_in(), name);
  if (status == nullptr) status = named(backends(), name);
  if (status == nullptr) {
    std::vector<std::string> known;
    for (const BackendStatus& other : backends()) {
      if (std::find(known.begin(), known.end(), other.name) == known.end()) known.push_back(other.name);
    }
    reject("backend", fmt::format("\"{}\"", name), fmt::format("{}", fmt::join(known, ", ")));
  }
  if (status->available) return *status->backend;
  throw Error(ErrorCode::unavailable, "backend", fmt::format("backend: {} is unavailable: {}", name, status->reason));
}

std::string_view library_version() { return QUIRE_VERSION; }

const Backend& default_backend() {
  if (const auto chosen = detail::trusted_variable("QUIRE_BACKEND"); chosen && !chosen->empty()) return backend(*chosen);
  const Backend* best = nullptr;
  for (const BackendStatus& status : backends()) {
    if (status.available && status.backend->info().rank >= 0 && (best == nullptr || status.backend->info().rank > best->info().rank)) {
      best = status.backend;
    }
  }
  if (best == nullptr) throw Error(ErrorCode::unavailable, "backend", "backend: none is available (quire backends tells why)");
  return *best;
}

}  // namespace quire
