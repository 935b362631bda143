// The golden cases as a family.
#include "golden_cases.h"

#include "case/exact_json.h"

#include <string>

namespace quire::conformance {

const std::vector<nlohmann::json>& golden_cases() {
  static const std::vector<nlohmann::json> cases = [] {
    std::vector<nlohmann::json> all;
    for (std::string_view text : golden_texts()) {
      while (!text.empty()) {
        const std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
        if (!line.empty()) all.push_back(parse_exact(line));
      }
    }
    return all;
  }();
  return cases;
}

bool is_within_reach(const nlohmann::json& golden_case, const Backend& backend) {
  const std::string id = golden_case.value("id", std::string());
  const quire_contract contract = backend.contract(QUIRE_OP_GDN_PREFILL, DType::f32, DType::f32);
  if (id.find("(float64)") != std::string::npos) return contract.u_accumulate <= 0x1p-53;
  // Decays multiplied over a chunk leave float32's range where one token's do not.
  if (id.find("(unchunked)") != std::string::npos) return contract.chunk_length <= 1;
  return true;
}

}  // namespace quire::conformance
