// Regimes of calls, by cases written by hand.
#include "run/regimes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "case/evaluate.h"
#include "honest/honest.h"
#include "judge/judge_call.h"

namespace {

using nlohmann::json;
using Regimes = std::vector<std::string>;

// The classes of a case's only call that has any.
Regimes regimes(const json& test_case) {
  static const quire::Backend honest(quire::conformance::honest_backend(), "(honest)");
  quire::conformance::Judging judging(honest, quire::backend("reference"));
  judging.classify_by(quire::conformance::regimes_of);
  const auto evaluated = quire::conformance::evaluate(test_case, {{&judging.backend(), nullptr}, {}, {}});
  INFO(evaluated.text);
  REQUIRE(evaluated.ok);
  Regimes found;
  for (const auto& verdict : judging.take()) {
    if (!verdict.regimes.empty()) found = verdict.regimes;
  }
  return found;
}

bool has(const Regimes& found, const std::string& regime) {
  const bool is_there = std::find(found.begin(), found.end(), regime) != found.end();
  if (!is_there) {
    for (const std::string& one : found) MESSAGE(one);
  }
  return is_there;
}

json prefill(const json& g, const json& beta, int tokens = 2) {
  const json rows(static_cast<std::size_t>(tokens), json::array({json::array({1, 0.5})}));
  json call = {{"op", "gdn_prefill"}, {"q", rows}, {"k", rows}, {"v", rows}, {"cu_seqlens", {0, tokens}}};
  if (!g.is_null()) call["g"] = g;
  if (!beta.is_null()) call["beta"] = beta;
  return call;
}

// One lane of `count` tokens on a whole index; the last token's scores are those given, for q = 1 and a scale of 1.
json attend(const std::vector<double>& scores) {
  json q = json::array(), k = json::array();
  for (const double score : scores) {
    q.push_back({{1}});
    k.push_back({{score}});
  }
  return {{"op", "attend"}, {"index", {{"whole", {{"batch", 1}, {"seq", scores.size()}}}}}, {"q", {q}}, {"k", {k}}, {"v", {k}},
          {"scale", 1}};
}

}  // namespace

TEST_CASE("regimes: decays and write strengths") {
  CHECK(has(regimes(prefill({}, {})), "decay: none"));
  CHECK(has(regimes(prefill({}, {})), "beta: up to 1"));
  CHECK(has(regimes(prefill({{1}, {1}}, {{1}, {0}})), "decay: none"));
  CHECK(has(regimes(prefill({{1}, {0.5}}, {{1}, {1}})), "decay: mild"));
  CHECK(has(regimes(prefill({{1}, {0.49}}, {{1}, {1}})), "decay: strong"));
  CHECK(has(regimes(prefill({{1}, {0}}, {{1}, {1.5}})), "decay: with zeros"));
  CHECK(has(regimes(prefill({}, {{1}, {1}})), "beta: up to 1"));
  CHECK(has(regimes(prefill({}, {{1}, {1.001}})), "beta: up to 2"));
}

TEST_CASE("regimes: keys, lengths and states of a prefill") {
  json call = prefill({}, {});
  CHECK(has(regimes(call), "keys: as they are"));
  CHECK(has(regimes(call), "states: none"));
  CHECK(has(regimes(call), "longest sequence: 2 to 63"));
  call["use_qk_l2norm"] = true;
  CHECK(has(regimes(call), "keys: l2norm"));
  call["cu_seqlens"] = {0, 1, 2};
  CHECK(has(regimes(call), "longest sequence: up to 1"));
  CHECK(has(regimes(prefill({}, {}, 63)), "longest sequence: 2 to 63"));
  CHECK(has(regimes(prefill({}, {}, 64)), "longest sequence: 64 and more"));
  for (const auto& [dtype, name] : {std::pair{"f32", "float32"}, {"f16", "half or bf16"}, {"bf16", "half or bf16"}, {"f8_e4m3fn", "fp8"}}) {
    json state = prefill({}, {});
    state["initial_state"] = {{"dtype", dtype}, {"shape", {1, 1, 2, 2}}, {"data", {0, 0, 0, 0}}};
    CHECK(has(regimes(state), std::string("states: ") + name));
  }
}

TEST_CASE("regimes: decode with raw gates") {
  json full = {{"op", "gdn_decode"}, {"A_log", {0.5}}, {"dt_bias", {0.5}}, {"state_indices", {0}}};
  for (const char* name : {"q", "k", "v"}) full[name] = json::array({json::array({json::array({json::array({1, 0.5})})})});
  for (const char* name : {"a", "b"}) full[name] = json::array({json::array({json::array({0.5})})});
  full["state_pool"] = {{"dtype", "f32"}, {"shape", {1, 1, 2, 2}}, {"data", {0, 0, 0, 0}}};
  CHECK(has(regimes(full), "decay: raw gates"));
  CHECK(has(regimes(full), "beta: up to 1"));
  CHECK(has(regimes(full), "keys: l2norm"));
}

TEST_CASE("regimes: attention's weights and columns") {
  CHECK(has(regimes(attend({3})), "columns: up to 1"));
  CHECK(has(regimes(attend({3})), "weights: a single column"));
  CHECK(has(regimes(attend({1, 1, 1})), "columns: 2 to 16"));
  CHECK(has(regimes(attend({1, 1, 1})), "weights: flat"));
  // The greatest of two has exp(0) / (exp(0) + exp(-4.6)) = 0.9900 > 0.99, and with -4.5 it has 0.989.
  CHECK(has(regimes(attend({0, -4.6})), "weights: one-hot"));
  CHECK(has(regimes(attend({0, -4.5})), "weights: flat"));  // twice an even share of two is all
  // Of three, 2/3 is twice an even share: exp(0) over 1 + 2 exp(-x) is past it from x = log 4 on.
  CHECK(has(regimes(attend({0, -1.38, -1.38})), "weights: flat"));
  CHECK(has(regimes(attend({0, -1.39, -1.39})), "weights: mixed"));
  CHECK(has(regimes(attend(std::vector<double>(16, 0))), "columns: 2 to 16"));
  CHECK(has(regimes(attend(std::vector<double>(17, 0))), "columns: 17 and more"));
}

TEST_CASE("regimes: what attention's scores and sight go through") {
  json call = attend({1, 2, 3});
  CHECK(has(regimes(call), "sight: packed or whole"));
  CHECK(has(regimes(call), "scores: plain"));
  CHECK(has(regimes(call), "inputs: float32"));
  call["sinks"] = {0.5};
  CHECK(has(regimes(call), "scores: sinks"));
  call["softcap"] = 2;
  CHECK(has(regimes(call), "scores: softcap"));
  call["index"]["then"] = {{{"window", 2}}};
  CHECK(has(regimes(call), "sight: window"));

  // A hole scores 0 (D2): with a key of -9 beside it, its weight is nearly all; a sink of 9 takes most of that.
  json tabled = {{"op", "attend"},
                 {"index", {{"pos", {{1}}}, {"table", {{-1, 0}}}}},
                 {"q", json::array({json::array({json::array({json::array({1})})})})},
                 {"k", json::array({json::array({json::array({json::array({-9})})})})},
                 {"v", json::array({json::array({json::array({json::array({1})})})})},
                 {"k_pool", {{"dtype", "f32"}, {"shape", {1, 1, 1}}, {"data", {0}}}},
                 {"v_pool", {{"dtype", "f32"}, {"shape", {1, 1, 1}}, {"data", {0}}}},
                 {"scale", 1}};
  CHECK(has(regimes(tabled), "sight: causal"));
  CHECK(has(regimes(tabled), "weights: one-hot"));
  tabled["sinks"] = {9};
  CHECK(has(regimes(tabled), "weights: flat"));
}

TEST_CASE("regimes: ops without tolerances have none") {
  CHECK(regimes({{"op", "positions"}, {"index", {{"whole", {{"batch", 1}, {"seq", 3}}}}}}).empty());
}
