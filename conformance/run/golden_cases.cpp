// The golden cases as a family.
#include "golden_cases.h"

#include <algorithm>
#include <string>

#include "case/exact_json.h"
#include "laws.h"

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

namespace {

// Operands or intermediates narrower than float32.
bool is_narrow(const quire_contract& contract) { return contract.u_product > 0x1p-24 || contract.u_store > 0x1p-24; }

// Whether a case says what floating results are, to within what float32 does.
bool expects_numbers(const std::string& op) { return op == "attend" || op.rfind("gdn_", 0) == 0; }

}  // namespace

bool is_within_reach(const nlohmann::json& golden_case, const Backend& backend) {
  const std::string id = golden_case.value("id", std::string());
  const quire_contract contract = backend.contract(QUIRE_OP_GDN_PREFILL, DType::f32, DType::f32);
  if (id.find("(float64)") != std::string::npos && contract.u_accumulate > 0x1p-53) return false;
  // Decays multiplied over a chunk leave float32's range where one token's do not.
  if (id.find("(unchunked)") != std::string::npos && contract.chunk_length > 1) return false;
  const std::set<std::string> ops = ops_of(golden_case);
  const bool is_refused = golden_case.contains("expect") && golden_case["expect"].is_object() &&
                          golden_case["expect"].value("status", "") == "error";
  return is_refused || !is_narrow(contract) || std::none_of(ops.begin(), ops.end(), expects_numbers);
}

}  // namespace quire::conformance
