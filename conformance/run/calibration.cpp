// Counting errors by regime.
#include "calibration.h"

namespace quire::conformance {

void RegimeErrors::add(const RegimeErrors& other) {
  calls += other.calls;
  all.add(other.all);
  shares.add(other.shares);
}

void add_call(RegimeTable& table, const CallVerdict& verdict) {
  if (verdict.regimes.empty() || verdict.status == CallVerdict::Status::unsupported) return;
  const RegimeErrors one{1, verdict.errors, verdict.shares};
  auto& regimes = table[verdict.op];
  regimes["all"].add(one);
  for (const std::string& regime : verdict.regimes) regimes[regime].add(one);
}

void add_table(RegimeTable& table, const RegimeTable& other) {
  for (const auto& [op, regimes] : other) {
    for (const auto& [regime, errors] : regimes) table[op][regime].add(errors);
  }
}

}  // namespace quire::conformance
