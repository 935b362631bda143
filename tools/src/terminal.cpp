// Checks of the numbers that options take.
#include "terminal.h"

#include <quire/error.h>

#include <charconv>
#include <cmath>

namespace quire::tools {

std::string whole_number_fault(const std::string& text, unsigned long long least, unsigned long long most) {
  unsigned long long number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool right = error == std::errc() && stop == end && number >= least && number <= most;
  return right ? "" : fmt::format("\"{}\"; allowed: whole numbers from {} to {}", printable(text), least, most);
}

std::string empty_fault(const std::string& text) { return text.empty() ? "\"\"; allowed: anything but nothing" : ""; }

std::string positive_number_fault(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const bool right = !text.empty() && *end == '\0' && std::isfinite(number) && number > 0;
  return right ? "" : fmt::format("\"{}\"; allowed: finite numbers above 0", printable(text));
}

}  // namespace quire::tools
