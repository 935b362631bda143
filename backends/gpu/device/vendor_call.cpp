// Calls of the vendor's runtime.
#include "vendor_call.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace quire::gpu {

void require(VENDOR(Error_t) status, const char* call) {
  if (status == VENDOR(Success)) return;
  (void)VENDOR(GetLastError)();
  const std::string_view words = VENDOR(GetErrorString)(status), name = VENDOR(GetErrorName)(status);
  std::string text = words == name ? fmt::format("{}: {}", call, name) : fmt::format("{}: {} ({})", call, words, name);
  if (vendor::is_lasting(status)) text += "; the device can't be used any more in this process";
  throw Failure{vendor::is_unavailable(status) ? QUIRE_UNAVAILABLE : QUIRE_INTERNAL, std::move(text)};
}

void ignore(VENDOR(Error_t) status) {
  if (status != VENDOR(Success)) (void)VENDOR(GetLastError)();
}

}  // namespace quire::gpu
