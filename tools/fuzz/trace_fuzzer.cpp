// Fuzzing the trace reader: any bytes are requests or give one error line.
#include "replay/trace.h"

#include <quire/error.h>

#include <cstdint>
#include <sstream>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const double scale : {1.0, 0.125, 0.01}) {
    std::istringstream stream(text);
    try {
      const quire::replay::Trace trace = quire::replay::read_trace(stream, "trace", 0, 0, scale);
      for (const quire::replay::Request& request : trace.requests) {
        if (request.prompt < 1 || request.tokens() < request.prompt) __builtin_trap();
        if (request.source(0).offset != 0) __builtin_trap();
      }
      if (trace.longest() > trace.tokens()) __builtin_trap();
    } catch (const quire::Error& error) {
      if (std::string_view(error.what()).find('\n') != std::string_view::npos) __builtin_trap();
    }
  }
  return 0;
}
