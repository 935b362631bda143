// Floating results: the derived tolerance's two sides, NaN and infinity, and counting errors.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>

#include "error_model.h"
#include "fake_backend.h"
#include "judged.h"

namespace {

using nlohmann::json;
using quire::Call;
using quire::conformance::CallVerdict;
using quire::conformance::ErrorDistribution;
using quire::conformance::FakeBackend;
using quire::conformance::judged_one;
using quire::conformance::set_element;
using quire::reference::Bounds;
using Status = CallVerdict::Status;

constexpr float infinite = std::numeric_limits<float>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

const char* const attend =
    R"({"op":"attend","index":{"whole":{"batch":1,"seq":2}},"q":[[[[0.3,-1.1]],[[0.7,0.2]]]],"k":[[[[1.5,0.25]],[[-0.4,0.9]]]],"v":[[[[0.6]],[[-1.7]]]]})";
const char* const decode =
    R"({"op":"gdn_decode","q":[[[[0.3,-1.1]]]],"k":[[[[1.5,0.25]]]],"v":[[[[0.6]]]],"g":[[[0.9]]],"beta":[[[0.7]]],"state_pool":[[[[0.2,-0.8]]],[[[1,1]]]],"state_indices":[0]})";

CallVerdict verdict_with(const json& test_case, const char* tensor, std::int64_t element, double number, const quire_contract& contract) {
  FakeBackend fake;
  fake.contract = contract;
  fake.after = [&](const Call& call) { set_element(call, tensor, element, number); };
  return judged_one(test_case, fake.backend());
}

// The reference's float64 value of an element and its deviation under a contract.
std::pair<double, double> bounds_of(const json& test_case, const std::string& tensor, std::int64_t element,
                                    const quire_contract& contract) {
  FakeBackend fake;
  std::pair<double, double> found{not_a_number, not_a_number};
  const auto take = [&](const Bounds& bounds, std::int64_t n) {
    found = {bounds.center[static_cast<std::size_t>(n)], bounds.deviation[static_cast<std::size_t>(n)]};
  };
  fake.before = [&](const Call& call) {
    if (call.op() == QUIRE_OP_ATTEND) {
      const auto bounds = quire::reference::attend_bounds(*static_cast<const quire_attend_args*>(call.args()), contract);
      take(tensor == "out" ? bounds.out : bounds.lse, element);
    } else {
      const auto bounds = quire::reference::gdn_decode_bounds(*static_cast<const quire_gdn_decode_args*>(call.args()), contract);
      if (tensor == "output")
        take(bounds.output, element);
      else
        take(bounds.output_state.at(0), element);
    }
  };
  judged_one(test_case, fake.backend());
  return found;
}

quire_contract products_in_bf16() {
  quire_contract contract = quire::conformance::float32_contract();
  contract.u_product = 0x1p-8;
  return contract;
}

}  // namespace

TEST_CASE("tolerance: just below it passes, just above it fails, on both sides and under every contract") {
  struct Place {
    const char* test_case;
    const char* tensor;
    std::int64_t element;
  };
  const Place places[] = {{attend, "out", 1}, {attend, "lse", 0}, {decode, "output", 0}, {decode, "state_pool", 1}};
  for (const Place& place : places) {
    const json test_case = json::parse(place.test_case);
    for (const quire_contract& contract : {quire::conformance::float32_contract(), products_in_bf16()}) {
      INFO(place.test_case, ", ", place.tensor);
      const auto [center, deviation] = bounds_of(test_case, place.tensor, place.element, contract);
      REQUIRE(deviation > 0);
      // The published factors: 8 deviations, 12 where operands are narrower than sums; then the result's own rounding.
      const double reach = (contract.u_product > contract.u_accumulate ? 12 : 8) * deviation;
      const auto low = static_cast<float>(center - reach), high = static_cast<float>(center + reach);
      CHECK(low < center);
      CHECK(high > center);
      const auto status_of = [&](float number) { return verdict_with(test_case, place.tensor, place.element, number, contract).status; };
      CHECK(status_of(high) == Status::passed);
      CHECK(status_of(low) == Status::passed);
      CHECK(status_of(std::nextafter(high, infinite)) == Status::failed);
      CHECK(status_of(std::nextafter(low, -infinite)) == Status::failed);
    }
  }
}

TEST_CASE("tolerance: it is the contract's: what a narrow one may do, float32 may not") {
  const json test_case = json::parse(attend);
  const auto [center, deviation] = bounds_of(test_case, "out", 1, products_in_bf16());
  const double off = center + 4 * deviation;
  CHECK(verdict_with(test_case, "out", 1, off, products_in_bf16()).status == Status::passed);
  const CallVerdict verdict = verdict_with(test_case, "out", 1, off, quire::conformance::float32_contract());
  CHECK(verdict.status == Status::failed);
  CHECK(verdict.failure.law == "D1");
  CHECK(verdict.failure.place == "lane 0, token 1, head 0, element 0");
  CHECK(verdict.failure.what.ends_with(" times the tolerance off"));
  CHECK(std::stod(verdict.failure.tolerance) ==
        doctest::Approx(8 * bounds_of(test_case, "out", 1, quire::conformance::float32_contract()).second).epsilon(0.05));
  CHECK(verdict.failure.message.ends_with(", tolerance " + verdict.failure.tolerance));
}

TEST_CASE("tolerance: rows of a pool that the call stores nothing in are exact, however small the error") {
  const json test_case = json::parse(decode);
  const CallVerdict verdict = verdict_with(test_case, "state_pool", 2, std::nextafter(1.0F, 2.0F), quire::conformance::float32_contract());
  CHECK(verdict.failure.what == "must be equal bit for bit");
  CHECK(verdict.failure.law == "E6");
  CHECK(verdict.failure.place == "slot 1, head 0, v 0, k 0");
}

TEST_CASE("tolerance: NaN and infinity are never near a number") {
  const json finite = json::parse(attend);
  for (const char* tensor : {"out", "lse"}) {
    CHECK(verdict_with(finite, tensor, 1, not_a_number, products_in_bf16()).failure.what == "is not a number");
    for (const double wrong : {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()}) {
      CHECK(verdict_with(finite, tensor, 1, wrong, products_in_bf16()).status == Status::failed);
    }
  }
  json unbounded = finite;
  const auto whole = [&](const char* v) {
    unbounded["v"] = {{"dtype", "f32"}, {"shape", {1, 2, 1, 1}}, {"data", {v, 1}}};
    return unbounded;
  };
  // The first token sees its own column alone, whose value is its result.
  const auto status_of = [&](const char* v, double got) { return verdict_with(whole(v), "out", 0, got, products_in_bf16()).status; };
  CHECK(status_of("inf", infinite) == Status::passed);
  CHECK(status_of("inf", -infinite) == Status::failed);
  CHECK(status_of("inf", std::numeric_limits<float>::max()) == Status::failed);
  CHECK(status_of("inf", not_a_number) == Status::failed);
  CHECK(status_of("-inf", -infinite) == Status::passed);
  CHECK(status_of("-inf", infinite) == Status::failed);
  CHECK(status_of("nan", not_a_number) == Status::passed);
  CHECK(status_of("nan", -not_a_number) == Status::passed);
  CHECK(status_of("nan", 0) == Status::failed);
  CHECK(status_of("nan", infinite) == Status::failed);
}

TEST_CASE("tolerance: a token that sees nothing") {
  // D3: zeros and minus infinity, without tolerance.
  const json nothing = json::parse(
      R"({"op":"attend","index":{"pos":[[-1]],"table":[[0]]},"q":[[[[1]]]],"k":[[[[1]]]],"v":[[[[1]]]],"k_pool":[[[2]]],"v_pool":[[[4]]]})");
  const auto contract = products_in_bf16();
  CHECK(verdict_with(nothing, "lse", 0, -infinite, contract).status == Status::passed);
  CHECK(verdict_with(nothing, "lse", 0, -std::numeric_limits<float>::max(), contract).failure.law == "D3");
  CHECK(verdict_with(nothing, "lse", 0, not_a_number, contract).status == Status::failed);
  CHECK(verdict_with(nothing, "out", 0, 1e-45, contract).failure.law == "D1");
  CHECK(verdict_with(nothing, "out", 0, not_a_number, contract).status == Status::failed);
}

TEST_CASE("tolerance: what the laws leave open may be anything that is written twice alike") {
  // B7: position 3 of a table of two columns.
  const json past = json::parse(
      R"({"op":"attend","index":{"pos":[[3]],"table":[[0,1]]},"q":[[[[1]]]],"k":[[[[1]]]],"v":[[[[1]]]],"k_pool":[[[2]],[[3]]],"v_pool":[[[4]],[[5]]]})");
  for (const double number : {0.0, 1e30, static_cast<double>(infinite), not_a_number}) {
    CHECK(verdict_with(past, "out", 0, number, quire::conformance::float32_contract()).status == Status::passed);
  }
  FakeBackend fake;
  fake.after = [&](const Call& call) { set_element(call, "out", 0, fake.runs.load()); };
  CHECK(judged_one(past, fake.backend()).failure.what == "differs from one run to the next, which is captured and launched");
}

TEST_CASE("tolerance: a state too large for fp8 is its largest number (E5), and NaN is not") {
  json large = json::parse(decode);
  large["state_pool"] = {{"dtype", "f8_e4m3fn"}, {"shape", {1, 1, 1, 2}}, {"data", {0, 0}}};
  large["v"] = json::parse("[[[[100000]]]]");
  large["use_qk_l2norm"] = false;
  const auto contract = quire::conformance::float32_contract();
  CHECK(verdict_with(large, "state_pool", 0, 448, contract).status == Status::passed);
  const CallVerdict smaller = verdict_with(large, "state_pool", 0, 416, contract);
  CHECK(smaller.status == Status::failed);
  CHECK(smaller.failure.law == "E5");
  CHECK(smaller.failure.expected == "448");
  CHECK(smaller.failure.got == "416");
  CHECK(verdict_with(large, "state_pool", 0, not_a_number, contract).failure.what == "is not a number");
}

TEST_CASE("errors: every element with a tolerance is counted by its error over that, none else") {
  // Two outputs and two lse; q, k, v and no pools.
  const json test_case = json::parse(attend);
  const CallVerdict verdict =
      verdict_with(test_case, "out", 1, bounds_of(test_case, "out", 1, products_in_bf16()).first, products_in_bf16());
  CHECK(verdict.errors.total() == 4);
  CHECK(verdict.errors.counts[0] == 4);
  const auto [center, deviation] = bounds_of(test_case, "out", 1, products_in_bf16());
  const std::map<double, std::size_t> places = {{0.05, 1}, {0.2, 2}, {0.4, 3}, {0.6, 4}, {0.9, 5}, {1.5, 6}, {1000, 6}};
  for (const auto& [share, place] : places) {
    const ErrorDistribution errors = verdict_with(test_case, "out", 1, center + share * 12 * deviation, products_in_bf16()).errors;
    CHECK(errors.total() == 4);
    CHECK(errors.counts[0] == 3);
    CHECK(errors.counts[place] == 1);
    CHECK(errors.largest == doctest::Approx(share).epsilon(0.01));
  }
  // Decode: one output, the two elements of the stored row; the other row is exact.
  FakeBackend fake;
  CHECK(judged_one(json::parse(decode), fake.backend()).errors.total() == 3);
  CHECK(judged_one(json::parse(R"({"op":"mask","index":{"whole":{"batch":1,"seq":2}}})"), fake.backend()).errors.total() == 0);
}

TEST_CASE("errors: counts by hand") {
  ErrorDistribution errors;
  for (const double ratio : {0.0, 0.01, 0.011, 0.1, 0.25, 0.3, 0.5, 0.75, 0.76, 1.0, 1.0001, 7.0}) errors.add(ratio);
  CHECK(errors.counts == std::array<std::int64_t, 7>{2, 2, 1, 2, 1, 2, 2});
  CHECK(errors.largest == 7);
  CHECK(errors.total() == 12);
  ErrorDistribution other;
  other.add(0.02);
  other.add(9);
  errors.add(other);
  CHECK(errors.counts == std::array<std::int64_t, 7>{2, 3, 1, 2, 1, 2, 3});
  CHECK(errors.largest == 9);
  CHECK(errors.total() == 14);
  CHECK(ErrorDistribution().total() == 0);
}
