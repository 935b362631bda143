// Which devices a plugin's code runs on, from the list that it was compiled for.
#pragma once

#include <cstddef>
#include <string_view>

namespace quire::gpu {

/// `list` in CMake's words: "80-real 90a-real 120-virtual". Machine code (-real) runs on devices of its major number from its minor number
/// on, that of an architecture with an `a` on that one alone; PTX (-virtual) on every later device, with an `a` on that one alone. Without either
/// word both are there.
inline bool runs_on(std::string_view list, int major, int minor) {
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find(' '));
    list.remove_prefix(entry.size() < list.size() ? entry.size() + 1 : entry.size());
    int number = 0;
    std::size_t digits = 0;
    for (; digits < entry.size() && entry[digits] >= '0' && entry[digits] <= '9'; ++digits) number = number * 10 + (entry[digits] - '0');
    const bool is_exact = digits < entry.size() && entry[digits] == 'a';
    const bool has_ptx = !entry.ends_with("-real");
    if (is_exact ? number == major * 10 + minor : number <= major * 10 + minor && (has_ptx || number / 10 == major)) return true;
  }
  return false;
}

}  // namespace quire::gpu
