// The golden cases as a family.
#include "golden_cases.h"

#include "case/exact_json.h"

#include <string>
#include <utility>

namespace quire::conformance {

namespace {

std::vector<nlohmann::json> cases_of(const std::vector<std::string_view>& texts) {
  std::vector<nlohmann::json> all;
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(line.size() < text.size() ? line.size() + 1 : line.size());
      if (!line.empty()) all.push_back(parse_exact(line));
    }
  }
  return all;
}

struct Cases {
  std::vector<nlohmann::json> all;
  std::size_t hand_made = 0;
};

const Cases& cases() {
  static const Cases made = [] {
    Cases cases{cases_of(golden_texts()), 0};
    cases.hand_made = cases.all.size();
    for (nlohmann::json& random : cases_of(random_golden_texts())) cases.all.push_back(std::move(random));
    return cases;
  }();
  return made;
}

}  // namespace

const std::vector<nlohmann::json>& golden_cases() { return cases().all; }

bool is_literal(std::size_t number, const Backend& backend) {
  if (number >= cases().hand_made) return false;
  const std::string id = golden_cases()[number].value("id", std::string());
  const quire_contract contract = backend.contract(QUIRE_OP_GDN_PREFILL, DType::f32, DType::f32);
  if (id.find("(float64)") != std::string::npos) return contract.u_accumulate <= 0x1p-53;
  // Decays multiplied over a chunk leave float32's range where one token's do not.
  if (id.find("(unchunked)") != std::string::npos) return contract.chunk_length <= 1;
  return true;
}

}  // namespace quire::conformance
