// A backend that computes as the reference does, until a test tells it otherwise.
#pragma once

#include <quire/call.h>
#include <quire/registry.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>

namespace quire::conformance {

/// One at a time: a table's functions carry no data. Its contract is float32's unless it is set.
class FakeBackend {
 public:
  FakeBackend();
  ~FakeBackend();
  FakeBackend(const FakeBackend&) = delete;
  FakeBackend& operator=(const FakeBackend&) = delete;

  const Backend& backend() const { return backend_; }

  std::function<quire_status(quire_op, const void*)> supports;
  /// In place of a run of the reference; `runs` counts both.
  std::function<quire_status(quire_op, const void*)> run;
  /// Before and after the reference has run on the call's memory.
  std::function<void(const Call&)> before, after;
  std::optional<quire_contract> contract;
  quire_status contract_status = QUIRE_OK;
  std::string message = "planted";  ///< what `last_error` says
  std::atomic<int> runs{0};

 private:
  static quire_backend_table table();
  quire_backend_table table_;
  Backend backend_;
};

/// Float32 throughout.
quire_contract float32_contract();

/// Adds 1 to the first byte of the n-th element (row-major) of a tensor of the call: another number, and where it is a float a little one.
void change_element(const Call& call, std::string_view tensor, std::int64_t n);
/// Writes a number to the n-th element of a floating tensor.
void set_element(const Call& call, std::string_view tensor, std::int64_t n, double number);

}  // namespace quire::conformance
