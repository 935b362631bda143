// The golden cases as a family.
#include "golden_cases.h"

#include <algorithm>
#include <string>
#include <utility>

#include "case/exact_json.h"
#include "laws.h"

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

// Operands or intermediates narrower than float32.
bool is_narrow(const quire_contract& contract) { return contract.u_product > 0x1p-24 || contract.u_store > 0x1p-24; }

// Whether a case says what floating results are, to within what float32 does.
bool expects_numbers(const std::string& op) { return op == "attend" || op.rfind("gdn_", 0) == 0; }

// The coarsest arithmetic of those of the case's ops that the backend has.
quire_contract coarsest_contract(const Backend& backend, const std::set<std::string>& ops) {
  quire_contract coarsest{sizeof coarsest, 0, 0, 0, 0, 0, 1, 1};
  for (const quire_op op : {QUIRE_OP_ATTEND, QUIRE_OP_GDN_PREFILL, QUIRE_OP_GDN_DECODE, QUIRE_OP_GDN_VERIFY}) {
    const auto is_of = [op](const std::string& name) { return name.starts_with(op_name(op)) && !name.ends_with("_slots"); };  // paged ones too
    if (std::none_of(ops.begin(), ops.end(), is_of)) continue;
    try {
      const quire_contract contract = backend.contract(op, DType::f32, DType::f32);
      coarsest.u_product = std::max(coarsest.u_product, contract.u_product);
      coarsest.u_accumulate = std::max(coarsest.u_accumulate, contract.u_accumulate);
      coarsest.u_store = std::max(coarsest.u_store, contract.u_store);
      coarsest.chunk_length = std::max(coarsest.chunk_length, contract.chunk_length);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unsupported) throw;  // a call that is not run
    }
  }
  return coarsest;
}

}  // namespace

const std::vector<nlohmann::json>& golden_cases() { return cases().all; }

bool is_literal(std::size_t number, const Backend& backend) {
  if (number >= cases().hand_made) return false;
  const nlohmann::json& golden_case = golden_cases()[number];
  const std::string id = golden_case.value("id", std::string());
  const std::set<std::string> ops = ops_of(golden_case);
  const quire_contract contract = coarsest_contract(backend, ops);
  if (id.find("(float64)") != std::string::npos && contract.u_accumulate > 0x1p-53) return false;
  // Decays multiplied over a chunk leave float32's range where one token's do not.
  if (id.find("(unchunked)") != std::string::npos && contract.chunk_length > 1) return false;
  const bool is_refused = golden_case.contains("expect") && golden_case["expect"].is_object() &&
                          golden_case["expect"].value("status", "") == "error";
  return is_refused || !is_narrow(contract) || std::none_of(ops.begin(), ops.end(), expects_numbers);
}

}  // namespace quire::conformance
