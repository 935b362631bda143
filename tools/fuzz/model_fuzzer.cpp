// Fuzzing the checkpoint reader: any bytes are a model or give one error line.
#include "story/model.h"

#include <cstdint>
#include <stdexcept>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto model = quire::story::Model::parse(std::as_bytes(std::span(data, size)));
    if (model.size().layers * model.size().dim * 4 > static_cast<std::int64_t>(size))
      __builtin_trap();
  } catch (const std::runtime_error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) __builtin_trap();
  }
  return 0;
}
