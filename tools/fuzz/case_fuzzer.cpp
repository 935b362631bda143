// libFuzzer target: a text as `quire eval` reads it, every case run and judged.
#include "case/evaluate.h"
#include "src/case_stream.h"

#include <quire/error.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Side files are not what is tested here: their folder does not exist.
  const quire::conformance::EvaluateOptions options{{}, "no-such-folder", {}};
  try {
    quire::tools::for_each_case({reinterpret_cast<const char*>(data), size}, [&](const nlohmann::json& test_case) {
      quire::conformance::evaluate(test_case, options);
      return true;
    });
  } catch (const quire::Error&) {  // a clear line, which is what such a text deserves
  }
  return 0;
}
