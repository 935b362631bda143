// What the commands say on standard error, and the numbers that their options take.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <utility>

namespace quire::tools {

/// Prints to standard error; one that can't be written changes nothing else.
template <typename... Args>
void complain(fmt::format_string<Args...> format, Args&&... args) {
  const std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fputs(text.c_str(), stderr);
}

/// Option checks for CLI11: each answers what is wrong in one line, or nothing. Whole numbers in decimal digits, from `least` to `most`.
std::string whole_number_fault(const std::string& text, unsigned long long least, unsigned long long most);
/// Something: an option that is given says what it wants.
std::string empty_fault(const std::string& text);
/// A finite number above 0.
std::string positive_number_fault(const std::string& text);

}  // namespace quire::tools
