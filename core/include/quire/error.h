// Errors: what went wrong, with which argument, and what is allowed.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace quire {

/// The four kinds of failure, numbered as in the C ABI.
enum class ErrorCode : std::int32_t { invalid_argument = 1, unsupported = 2, unavailable = 3, internal = 4 };

/// "invalid_argument", "unsupported", "unavailable" or "internal".
std::string_view name(ErrorCode code);

/// `text` as one line: control characters are escaped, and what lies past 300 bytes is left out. For names and values in messages.
std::string printable(std::string_view text);

/// Every failure of the library. `what()` is one line that names the argument, what was given and what is allowed.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string argument, const std::string& message)
      : std::runtime_error(escaped(message)), code_(code), argument_(std::move(argument)) {}

  ErrorCode code() const { return code_; }
  /// The argument's name as in the case format, or empty where no argument is at fault.
  const std::string& argument() const { return argument_; }

 private:
  static std::string escaped(const std::string& message);
  ErrorCode code_;
  std::string argument_;
};

/// Raises invalid_argument: "<argument>: <given>; allowed: <allowed>".
[[noreturn]] void reject(std::string_view argument, std::string_view given, std::string_view allowed);

}  // namespace quire
