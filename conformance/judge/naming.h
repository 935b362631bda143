// What a tensor's axes are called and which law an element hangs on.
#pragma once

#include <quire/call.h>

#include <span>
#include <string>

namespace quire::conformance {

/// "lane 0, token 2, head 1, element 3".
std::string place_of(const Call& call, std::string_view tensor, std::span<const std::int64_t> indices);
/// The law that a tensor's element is judged by.
std::string law_of(const Call& call, std::string_view tensor);

}  // namespace quire::conformance
