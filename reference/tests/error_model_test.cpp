// The derived tolerances: no honest implementation exceeds them, every fault of precision does.
#include "../src/error_model.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "error_model_calls.h"

namespace {

using namespace error_model_tests;  // NOLINT
using quire::DType;
using quire::reference::AttendBounds;
using quire::reference::Bounds;
using quire::reference::GdnBounds;

std::int64_t case_count(std::int64_t usual) {
  const char* text = std::getenv("QUIRE_TEST_CASES");
  return text != nullptr ? std::atoll(text) : usual;
}

// Where a run of its own begins, so that long ones can be split.
std::int64_t first_case() {
  const char* text = std::getenv("QUIRE_TEST_FIRST");
  return text != nullptr ? std::atoll(text) : 0;
}

// The largest error of a group of elements, in deviations; what the dtype's own rounding explains is taken off.
struct Largest {
  double deviations = 0;
  std::string where;
  void see(double value, double center, double deviation, DType dtype, const quire_contract& contract, const std::string& what) {
    if (deviation < 0 || std::isinf(deviation) || value == center) return;
    const double rounding = quire::reference::allowed(center, deviation, static_cast<quire_dtype>(dtype), contract) -
                            quire::reference::factor(contract) * deviation;
    const double error = std::fabs(value - center) - std::max(rounding, 0.0);
    const double found = error <= 0 ? 0 : deviation > 0 ? error / deviation : 1e300;
    if (!(found <= deviations)) {
      deviations = found;
      where = what;
    }
  }
};

// Values of float32, as yet unrounded, against bounds; answers whether each is accepted once rounded into the dtype.
bool judge(const std::vector<float>& values, const Bounds& bounds, DType dtype, const quire_contract& contract, Largest& largest,
           const std::string& what) {
  REQUIRE(values.size() == bounds.center.size());
  bool accepted = true;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::vector<float> held{values[i]};
    hold(held, dtype);
    accepted &= quire::reference::accepts(static_cast<double>(held[0]), bounds.center[i], bounds.deviation[i],
                                          static_cast<quire_dtype>(dtype), contract);
    largest.see(static_cast<double>(values[i]), bounds.center[i], bounds.deviation[i], DType::f32, contract, what);
  }
  return accepted;
}

// ---- the gated delta rule ----

struct Verdict {
  bool accepted = true;
  double largest = 0;
};

Verdict judge_rule(const RuleDraw& rule, const Way& way, const Way& declared, Largest& largest, const std::string& what) {
  RuleArgs call(rule);
  const quire_contract contract = contract_of(declared);
  const GdnBounds bounds = quire::reference::gdn_prefill_bounds(call.args, contract);
  const RuleResult result = compute_rule(rule, way);
  Largest here;
  const std::string where = way.name() + ": " + what;
  bool accepted = judge(result.output, bounds.output, rule.dtype, contract, here, where + " output");
  accepted &= judge(result.state, bounds.output_state.at(0), rule.state_dtype, contract, here, where + " state");
  if (here.deviations > largest.deviations) largest = here;
  return {accepted, here.deviations};
}

Way draw_rule_way(Random& random) {
  Way way;
  way.order = random.one_of({Way::forwards, Way::backwards, Way::pairwise, Way::lanes});
  way.fused = random.below(2) == 0;
  way.chunk = random.one_of({1, 1, 16, 64, 128});
  way.early_output = way.chunk == 1 && random.below(2) == 0;
  way.from_logs = way.chunk > 1 && random.below(2) == 0;
  way.inverse = way.chunk > 1 && random.below(2) == 0;
  return way;
}

// Prints the largest errors of each group where QUIRE_TEST_CASES asks for a run of its own.
void report(const char* title, const std::map<std::string, Largest>& groups) {
  if (std::getenv("QUIRE_TEST_CASES") == nullptr) return;
  std::printf("%s\n", title);
  for (const auto& [name, largest] : groups) std::printf("  %-34s %8.3f  %s\n", name.c_str(), largest.deviations, largest.where.c_str());
}

void check_honest_rules(const char* title, std::int64_t count, const std::function<void(Way&, Random&)>& adapt) {
  std::map<std::string, Largest> groups;
  for (std::int64_t n = first_case(); n < first_case() + count; ++n) {
    Random random(static_cast<std::uint64_t>(n) * 977 + 5);
    const RuleDraw rule = draw_rule(static_cast<std::uint64_t>(n), n % 50 == 0 ? 512 : 130, n % 10 == 0 ? 128 : 32);
    Way way = draw_rule_way(random);
    adapt(way, random);
    const std::string what = std::to_string(n) + " T" + std::to_string(rule.tokens) + " K" + std::to_string(rule.keys) + " V" +
                             std::to_string(rule.values) + " " + rule.regime;
    Largest here;
    const Verdict verdict = judge_rule(rule, way, way, here, what);
    if (!verdict.accepted) CHECK_MESSAGE(verdict.accepted, here.where << " is off by " << here.deviations << " deviations");
    const std::string chunk = way.chunk > 1 ? (way.from_logs ? "chunks, logs" : "chunks") : std::string("token");
    for (const std::string& group :
         {"by way: " + chunk, "by keys: " + rule.regime.substr(5, rule.regime.find(',') - 5) + (way.chunk > 1 ? " (chunks)" : ""),
          rule.regime.substr(rule.regime.find("decays"), rule.regime.find(", beta") - rule.regime.find("decays")) +
              (way.chunk > 1 ? " (chunks)" : "")}) {
      if (here.deviations > groups[group].deviations) groups[group] = here;
    }
  }
  report(title, groups);
}

TEST_CASE("error model: honest float32 recurrences stay within their tolerance") {
  check_honest_rules("gated delta rule, float32: largest error in deviations", case_count(1500), [](Way&, Random&) {});
}

TEST_CASE("error model: honest bf16, tf32 and stored-state recurrences stay within their own contract's tolerance") {
  check_honest_rules("gated delta rule, narrow contracts: largest error in deviations", case_count(600), [](Way& way, Random& random) {
    way.operand_bits = random.one_of({8, 11});
    way.store_bits = random.one_of({24, 24, 11, 8});
  });
}

TEST_CASE("error model: the covariance of many repeated keys stays a covariance") {
  // This draw's few keys come again and again without decay. Noise in the covariance's antisymmetric part, which nothing damps, once grew
  // until an output's variance came out as 0.
  const RuleDraw rule = draw_rule(62840, 130, 128);
  Way way;
  way.order = Way::pairwise;
  way.operand_bits = 11;
  way.store_bits = 8;
  Largest largest;
  CHECK(judge_rule(rule, way, way, largest, rule.regime).accepted);
  CHECK(largest.deviations < 6);
}

std::size_t index_of(std::int64_t n) { return static_cast<std::size_t>(n); }

TEST_CASE("error model: an error that the next token with the same key takes away leaves its own roundings") {
  // v = 2, then 0 and 0 under one key of length 1: the state is exactly 0, and an implementation's is u of u of 2.
  RuleDraw rule;
  rule.tokens = 3;
  rule.keys = rule.values = 1;
  rule.q = rule.k = rule.g = rule.beta = {1, 1, 1};
  rule.v = {2, 0, 0};
  rule.state = {0.7F};
  Way way;
  way.operand_bits = 8;
  RuleArgs call(rule);
  const GdnBounds bounds = quire::reference::gdn_prefill_bounds(call.args, contract_of(way));
  CHECK(bounds.output.center[1] == 0);
  CHECK(bounds.output.center[2] == 0);
  CHECK(bounds.output.deviation[1] >= 0x1p-8);
  CHECK(bounds.output.deviation[2] >= 0x1p-16);
  CHECK(bounds.output.deviation[2] < 0x1p-10);
}

// One token on a state of two columns, the first `size` times the second.
GdnBounds bounds_of_columns(float size, const Way& declared) {
  RuleDraw rule = typical_rule(4);
  rule.tokens = 1;
  rule.values = 2;
  for (auto [x, n] : {std::pair{&rule.q, rule.keys}, {&rule.k, rule.keys}, {&rule.v, std::int64_t{2}}, {&rule.state, 2 * rule.keys}})
    x->resize(static_cast<std::size_t>(n));
  rule.g.resize(1);
  rule.beta.resize(1);
  rule.v[1] = rule.v[0];
  rule.v[0] *= size;
  for (std::int64_t i = 0; i < rule.keys; ++i) rule.state[index_of(i)] = size * rule.state[index_of(rule.keys + i)];
  RuleArgs call(rule);
  return quire::reference::gdn_prefill_bounds(call.args, contract_of(declared));
}

TEST_CASE("error model: columns of half's denormals leave the others' tolerances alone") {
  Way half;
  half.operand_bits = 11;
  const GdnBounds same = bounds_of_columns(1, half), tiny = bounds_of_columns(0x1p-40F, half);
  // The second column is the same in both.
  CHECK(tiny.output.deviation[1] == doctest::Approx(same.output.deviation[1]).epsilon(1e-3));
  CHECK(tiny.output_state.at(0).deviation[100] == doctest::Approx(same.output_state.at(0).deviation[100]).epsilon(1e-3));
  // The first may all be lost: half of half's least number is 2^-25.
  CHECK(tiny.output_state.at(0).deviation[0] >= 0x1p-25);
  CHECK(tiny.output_state.at(0).deviation[0] < 0x1p-18);
  const GdnBounds whole = bounds_of_columns(0x1p-40F, Way{});
  CHECK(whole.output_state.at(0).deviation[0] < 0x1p-60);
}

TEST_CASE("error model: what half loses of a stored state") {
  // A state of about 2^-27, under a contract that stores states in half: 0 is honest; in float32 it is not.
  for (const auto& [bits, is_honest] : {std::pair{11, true}, {24, false}}) {
    Way way;
    way.store_bits = bits;
    const GdnBounds bounds = bounds_of_columns(0x1p-27F, way);
    const Bounds& state = bounds.output_state.at(0);
    CHECK(quire::reference::accepts(0, state.center[0], state.deviation[0], QUIRE_F32, contract_of(way)) == is_honest);
  }
}

// ---- attention ----

Verdict judge_attend(const AttendDraw& attend, const Way& way, const Way& declared, Largest& largest, const std::string& what) {
  AttendArgs call(attend);
  const quire_contract contract = contract_of(declared);
  const AttendBounds bounds = quire::reference::attend_bounds(call.args, contract);
  const AttendResult result = compute_attend(attend, way);
  Largest here;
  const std::string where = way.name() + ": " + what;
  bool accepted = judge(result.out, bounds.out, attend.dtype, contract, here, where + " out");
  accepted &= judge({result.lse}, bounds.lse, DType::f32, contract, here, where + " lse");
  if (here.deviations > largest.deviations) largest = here;
  return {accepted, here.deviations};
}

Way draw_attend_way(Random& random, std::int64_t columns) {
  Way way;
  way.order = random.one_of({Way::forwards, Way::backwards, Way::pairwise, Way::lanes});
  way.fused = random.below(2) == 0;
  way.base_two = random.below(3) == 0;
  way.block = random.one_of({0, 0, 1, 16, 64});
  way.pieces = columns > 8 ? random.one_of({1, 1, 3, 7}) : 1;
  way.normalise_first = random.below(4) == 0;
  return way;
}

void check_honest_attention(const char* title, std::int64_t count, const std::function<void(Way&, Random&)>& adapt) {
  std::map<std::string, Largest> groups;
  for (std::int64_t n = first_case(); n < first_case() + count; ++n) {
    Random random(static_cast<std::uint64_t>(n) * 1009 + 3);
    const AttendDraw attend = draw_attend(static_cast<std::uint64_t>(n), n % 10 == 0 ? 2000 : 300, n % 4 == 0 ? 128 : 32);
    Way way = draw_attend_way(random, attend.columns);
    adapt(way, random);
    const std::string what =
        std::to_string(n) + " n" + std::to_string(attend.columns) + " D" + std::to_string(attend.size) + " " + attend.regime;
    Largest here;
    const Verdict verdict = judge_attend(attend, way, way, here, what);
    if (!verdict.accepted) CHECK_MESSAGE(verdict.accepted, here.where << " is off by " << here.deviations << " deviations");
    const std::size_t comma = attend.regime.find(','), second = attend.regime.find(',', comma + 1);
    for (const std::string& group : {attend.regime.substr(0, comma), attend.regime.substr(comma + 2, second - comma - 2),
                                     std::string(way.block > 0    ? "by way: online"
                                                 : way.pieces > 1 ? "by way: pieces"
                                                                  : "by way: direct")}) {
      if (here.deviations > groups[group].deviations) groups[group] = here;
    }
  }
  report(title, groups);
}

TEST_CASE("error model: honest float32 attention stays within its tolerance") {
  check_honest_attention("attention, float32: largest error in deviations", case_count(2000), [](Way&, Random&) {});
}

TEST_CASE("error model: honest bf16 and tf32 attention stays within its own contract's tolerance") {
  check_honest_attention("attention, narrow contracts: largest error in deviations", case_count(800), [](Way& way, Random& random) {
    way.operand_bits = random.one_of({8, 11});
    way.store_bits = random.one_of({24, way.operand_bits});
  });
}

// ---- faults: each is beyond a float32 contract in typical cases ----

// Norms of a hundredth let the epsilon of E2 count.
RuleDraw typical_short_keys(std::uint64_t number) {
  RuleDraw rule = typical_rule(number);
  rule.normalise = true;
  for (float& k : rule.k) k *= 0.05F;
  return rule;
}

// The least over some cases of the largest error, in units of what is allowed.
template <typename Draw, typename Judge>
double margin_of(const Way& fault, const Way& declared, Draw draw, Judge judged) {
  double least = 1e300;
  for (std::uint64_t n = 1; n <= 5; ++n) {
    Largest largest;
    const Verdict verdict = judged(draw(n), fault, declared, largest, "typical");
    CHECK_FALSE(verdict.accepted);
    least = std::min(least, verdict.largest / quire::reference::factor(contract_of(declared)));
  }
  return least;
}

void check_fault(const char* name, const Way& fault, bool attends, RuleDraw (*draw)(std::uint64_t) = typical_rule) {
  CAPTURE(name);
  Way declared;
  declared.chunk = fault.chunk;
  declared.from_logs = fault.from_logs;
  const double margin = attends ? margin_of(fault, declared, typical_attend, judge_attend) : margin_of(fault, declared, draw, judge_rule);
  if (std::getenv("QUIRE_TEST_CASES") != nullptr) std::printf("  %-50s %10.1f times what is allowed\n", name, margin);
}

TEST_CASE("error model: faults of precision exceed a float32 contract's tolerance") {
  for (const int chunk : {1, 64}) {
    for (const bool from_logs : {false, true}) {
      if (chunk == 1 && from_logs) continue;
      Way way;
      way.chunk = chunk;
      way.from_logs = from_logs;
      const auto with = [&](auto set) {
        Way fault = way;
        set(fault);
        return fault;
      };
      if (std::getenv("QUIRE_TEST_CASES") != nullptr) std::printf("faults of the gated delta rule, %s\n", way.name().c_str());
      check_fault("tf32 operands", with([](Way& w) { w.operand_bits = 11; }), false);
      check_fault("bf16 operands", with([](Way& w) { w.operand_bits = 8; }), false);
      check_fault("half sums", with([](Way& w) { w.sum_bits = 11; }), false);
      check_fault("half decays", with([](Way& w) { w.decay_bits = 11; }), false);
      check_fault("scale off by 2^-12", with([](Way& w) { w.scale_error = 0x1p-12; }), false);
      check_fault("epsilon 1e-5", with([](Way& w) { w.epsilon = 1e-5; }), false, typical_short_keys);
      check_fault("state rounded to bf16 between chunks or tokens", with([](Way& w) { w.store_bits = 8; }), false);
      check_fault("state rounded to half between chunks or tokens", with([](Way& w) { w.store_bits = 11; }), false);
      if (chunk > 1) continue;
      check_fault("state rounded to bf16 once, half way", with([](Way& w) { w.state_bits = 8, w.only_halfway = true; }), false);
      check_fault("state rounded to half once, half way", with([](Way& w) { w.state_bits = 11, w.only_halfway = true; }), false);
    }
  }
}

TEST_CASE("error model: attention's weights among half's denormals, and stored parts") {
  // One column of weight 1 and 8,191 whose weights, 2^-26 each, half rounds to 0: all of their 2^-13 is lost.
  AttendDraw attend;
  attend.columns = 8192;
  attend.size = attend.values = 1;
  attend.q = {1};
  attend.k.assign(8192, static_cast<float>(-26 * std::log(2.0)));
  attend.k[0] = 0;
  attend.v.assign(8192, 1.0F);
  attend.v[0] = 0;
  const auto accepted = [&](double out, const Way& way) {
    AttendArgs call(attend);
    const AttendBounds bounds = quire::reference::attend_bounds(call.args, contract_of(way));
    return quire::reference::accepts(out, bounds.out.center[0], bounds.out.deviation[0], QUIRE_F32, contract_of(way));
  };
  Way half_operands, half_stored;
  half_operands.operand_bits = 11;
  half_stored.store_bits = 11;
  CHECK(accepted(0, half_operands));
  CHECK(accepted(0, half_stored));
  CHECK_FALSE(accepted(0, Way{}));

  // Two parts of 4,096 columns each whose sums of values cancel, stored in bf16: each part errs by up to 2^-9 of its 1/2.
  attend.k.assign(8192, 0.0F);
  for (std::size_t j = 0; j < 8192; ++j) attend.v[j] = j < 4096 ? 1.0F : -1.0F;
  Way stored;
  stored.store_bits = 8;
  CHECK(accepted(0x1p-9, stored));
  CHECK_FALSE(accepted(0x1p-9, Way{}));
}

TEST_CASE("error model: faults of attention exceed a float32 contract's tolerance") {
  if (std::getenv("QUIRE_TEST_CASES") != nullptr) std::printf("faults of attention\n");
  Way way;
  const auto with = [&](auto set) {
    Way fault = way;
    set(fault);
    return fault;
  };
  check_fault("tf32 operands", with([](Way& w) { w.operand_bits = 11; }), true);
  check_fault("bf16 operands", with([](Way& w) { w.operand_bits = 8; }), true);
  check_fault("half sums", with([](Way& w) { w.sum_bits = 11; }), true);
  check_fault("bf16 weights", with([](Way& w) { w.store_bits = 8; }), true);
  check_fault("half weights", with([](Way& w) { w.store_bits = 11; }), true);
  check_fault("scale off by 2^-12", with([](Way& w) { w.scale_error = 0x1p-12; }), true);
}

}  // namespace
