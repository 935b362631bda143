// Which laws and places a failure in the gated delta rule names.
#include <doctest/doctest.h>

#include "fake_backend.h"
#include "judged.h"
#include "run/runner.h"

namespace {

using nlohmann::json;
using quire::Call;
using quire::conformance::CallVerdict;
using quire::conformance::Failure;
using quire::conformance::FakeBackend;
using quire::conformance::set_element;

// A case with fields changed; null takes one away.
json with(const char* base, const char* changes) {
  json test_case = json::parse(base);
  test_case.merge_patch(json::parse(changes));
  return test_case;
}

// Two tokens, heads of two keys and one value.
const char* const prefill = R"({"op":"gdn_prefill","q":[[[1,0]],[[1,1]]],"k":[[[1,0]],[[0,1]]],"v":[[[2]],[[3]]],"cu_seqlens":[0,2],
  "output_state":[[[[5,5]]]],"output_final_state":true})";
const char* const decode =
    R"({"op":"gdn_decode","q":[[[[1,0]]],[[[1,1]]]],"k":[[[[1,0]]],[[[0,1]]]],"v":[[[[2]]],[[[3]]]],"use_qk_l2norm":false,
  "state_pool":[[[[1,0]]],[[[0,1]]],[[[3,3]]]],"state_indices":[0,1]})";
const char* const verify = R"({"op":"gdn_verify","index":{"pos":[[0,1],[0,-1]],"table":[[-1,-1],[-1,-1]],
  "then":[{"draft":{"slots":[[1,2],[3,-1]],"sees":[[[true,false],[true,true]],[[true,false],[false,false]]]}}]},
  "q":[[[[1,0]],[[1,1]]],[[[1,0]],[[1,1]]]],"k":[[[[1,0]],[[0,1]]],[[[1,0]],[[0,1]]]],"v":[[[[2]],[[3]]],[[[2]],[[3]]]],"use_qk_l2norm":false,
  "state_pool":[[[[1,0]]],[[[0,1]]],[[[3,3]]],[[[2,2]]]],"state_indices":[0,9],"state_slots":[[1,2],[3,-1]]})";
// Twelve tokens of paged prefill would do, but a page is 64 tokens long: one sequence, its first page read, its second written.
const char* const paged_decode = R"({"op":"gdn_decode_paged","q":[[[[1,0]]]],"k":[[[[1,0]]]],"v":[[[[2]]]],"use_qk_l2norm":false,
  "state_pool":[[[[1,0]]],[[[0,1]]],[[[3,3]]]],"page_indices":[2,0],"page_indptr":[0,2],"last_page_len":[1],"page_size":64})";
const char* const paged_prefill = R"({"op":"gdn_prefill_paged","q":[[[1,0]]],"k":[[[1,0]]],"v":[[[2]]],"cu_seqlens":[0,1],
  "state_pool":[[[[1,0]]],[[[0,1]]],[[[3,3]]]],"page_indices":[2],"page_indptr":[0,1],"last_page_len":[1],"page_size":64})";

// What is said where one element is far off.
Failure failure_of(const json& test_case, const char* tensor, std::int64_t element) {
  FakeBackend fake;
  fake.after = [&](const Call& call) {
    if (call.tensor(tensor) != nullptr) set_element(call, tensor, element, 1000);
  };
  return quire::conformance::judged_one(test_case, fake.backend()).failure;
}

std::string laws_of_failure(const json& test_case, const char* tensor, std::int64_t element) {
  return failure_of(test_case, tensor, element).laws();
}

}  // namespace

TEST_CASE("naming: outputs and stored states of prefill hang on the features in force") {
  CHECK(laws_of_failure(with(prefill, "{}"), "output", 1) == "E1");
  CHECK(failure_of(with(prefill, "{}"), "output", 1).place == "token 1, head 0, element 0");
  CHECK(laws_of_failure(with(prefill, "{}"), "output_state", 1) == "E1");
  CHECK(failure_of(with(prefill, "{}"), "output_state", 1).place == "slot 0, head 0, v 0, k 1");
  CHECK(laws_of_failure(with(prefill, R"({"use_qk_l2norm":true})"), "output", 0) == "E2, with E1");
  CHECK(laws_of_failure(with(prefill, R"({"use_qk_l2norm":true})"), "output_state", 0) == "E2, with E1");
  CHECK(laws_of_failure(with(prefill, R"({"cu_seqlens":[0,1,2],"output_state":[[[[5,5]]],[[[6,6]]]]})"), "output", 0) == "E1, with E4");
  const json narrow = with(prefill, R"({"output_state":{"dtype":"bf16","shape":[1,1,1,2],"data":[5,5]},"use_qk_l2norm":true})");
  CHECK(laws_of_failure(narrow, "output_state", 0) == "E5, with E2, E1");
  CHECK(laws_of_failure(narrow, "output", 0) == "E2, with E1");
}

TEST_CASE("naming: rows of prefill") {
  const json by_number = with(
      prefill,
      R"({"initial_state":[[[[1,1]]],[[[2,2]]]],"output_state":[[[[5,5]]],[[[6,6]]]],"state_indices":[1],"output_state_indices":[0]})");
  CHECK(laws_of_failure(by_number, "output_state", 0) == "E1, with E6");
  CHECK(laws_of_failure(by_number, "output_state", 2) == "E6");
  const json skipped = with(
      prefill,
      R"({"initial_state":[[[[1,1]]],[[[2,2]]]],"output_state":[[[[5,5]]],[[[6,6]]]],"state_indices":[1],"output_state_indices":[-1]})");
  CHECK(laws_of_failure(skipped, "output_state", 0) == "E6");
  const json one_pool = with(prefill, R"({"initial_state":[[[[1,1]]],[[[2,2]]]],"output_state":"initial_state","state_indices":[1]})");
  CHECK(laws_of_failure(one_pool, "output_state", 2) == "E1, with E8, E6");
  CHECK(laws_of_failure(one_pool, "output_state", 0) == "E8, with E6");
  CHECK(laws_of_failure(one_pool, "output", 0) == "E1, with E8, E6");
}

TEST_CASE("naming: the call's own final state of a sequence without tokens") {
  const json fresh = with(prefill, R"({"output_state":null,"output_final_state":true,"cu_seqlens":[0,0,2]})");
  CHECK(laws_of_failure(fresh, "output_state", 0) == "E4");
  CHECK(laws_of_failure(fresh, "output_state", 2) == "E1, with E4");
}

TEST_CASE("naming: checkpoints") {
  // 63 tokens of prefix: the first new one ends an interval.
  const char* const interval =
      R"({"checkpoint_every_n_tokens":64,"checkpoint_cu_starts":[0],"prefix_lens":[63],"state_checkpoints":[[[[8,8]]],[[[9,9]]]]})";
  CHECK(laws_of_failure(with(prefill, interval), "state_checkpoints", 0) == "E7, with E1");
  CHECK(laws_of_failure(with(prefill, interval), "state_checkpoints", 2) == "E6");
  CHECK(laws_of_failure(with(prefill, interval), "output_state", 0) == "E1");
  // One pool for both: the checkpoint in row 0, the final state in row 1.
  json one_pool = with(prefill, interval);
  one_pool["output_state"] = one_pool["state_checkpoints"];
  one_pool["state_checkpoints"] = "output_state";
  one_pool["initial_state"] = json::parse("[[[[1,1]]],[[[2,2]]]]");
  one_pool["state_indices"] = json::parse("[0]");
  one_pool["output_state_indices"] = json::parse("[1]");
  CHECK(laws_of_failure(one_pool, "output_state", 0) == "E7, with E1, E8, E6");
  CHECK(laws_of_failure(one_pool, "output_state", 2) == "E1, with E8, E6");
}

TEST_CASE("naming: decode") {
  CHECK(laws_of_failure(with(decode, "{}"), "output", 1) == "E1, with E6");
  CHECK(failure_of(with(decode, "{}"), "output", 1).place == "lane 1, token 0, head 0, element 0");
  CHECK(laws_of_failure(with(decode, "{}"), "state_pool", 3) == "E1, with E6");
  CHECK(laws_of_failure(with(decode, "{}"), "state_pool", 4) == "E6");
  CHECK(laws_of_failure(with(decode, R"({"use_qk_l2norm":null})"), "output", 1) == "E2, with E1, E6");
  const char* const gates = R"({"A_log":[0],"a":[[[0]],[[0]]],"dt_bias":[0],"b":[[[0]],[[0]]]})";
  CHECK(laws_of_failure(with(decode, gates), "output", 1) == "E3, with E1, E6");
  CHECK(laws_of_failure(with(decode, gates), "state_pool", 1) == "E3, with E1, E6");
  // A read row outside the pool pads sequence 0: what it reads as is no rule.
  CHECK(laws_of_failure(with(decode, R"({"state_indices":[-1,1]})"), "output", 0) == "E6");
  CHECK(laws_of_failure(with(decode, R"({"state_indices":[3,1]})"), "output", 0) == "E6");
  CHECK(laws_of_failure(with(decode, R"({"state_indices":[2,1]})"), "output", 0) == "E1, with E6");
  CHECK(laws_of_failure(with(decode, R"({"state_indices":{"dtype":"i32","shape":[2],"data":[-1,1]}})"), "output", 0) == "E6");
  CHECK(laws_of_failure(with(decode, R"({"state_indices":[-1,1]})"), "state_pool", 0) == "E6");
}

TEST_CASE("naming: verify") {
  CHECK(laws_of_failure(with(verify, "{}"), "output", 1) == "F2, with E1, E6");
  CHECK(failure_of(with(verify, "{}"), "output", 1).place == "lane 0, token 1, head 0, element 0");
  CHECK(laws_of_failure(with(verify, R"({"use_qk_l2norm":null})"), "output", 0) == "F2, with E2, E1, E6");
  CHECK(laws_of_failure(with(verify, "{}"), "state_pool", 2) == "F2, with E1, E6");
  CHECK(laws_of_failure(with(verify, "{}"), "state_pool", 0) == "F2, with E6");
  // Lane 1 reads row 9 of 4.
  CHECK(laws_of_failure(with(verify, "{}"), "output", 2) == "E6, with F2");
}

TEST_CASE("naming: paged calls, which are judged as the calls they are made of") {
  const auto failure_of_case = [](const char* text, const char* tensor, std::int64_t element) {
    FakeBackend fake;
    fake.after = [&](const Call& call) {
      if (call.tensor(tensor) != nullptr) set_element(call, tensor, element, 1000);
    };
    quire::conformance::Judging judging(fake.backend(), quire::backend("reference"));
    return run_case({"paged", 0}, json::parse(text), judging, nullptr).value();
  };
  // Decode reads page 2 and writes page 0; page 1 is none of its.
  const Failure decoded = failure_of_case(paged_decode, "state_pool", 0);
  CHECK(decoded.laws() == "E1, with E6, E12");
  CHECK(decoded.place == "page 0, head 0, v 0, k 0");
  CHECK(decoded.message.starts_with("gdn_decode state_pool at page 0, head 0, v 0, k 0: is "));
  CHECK(decoded.message.find("(E1, with E6, E12): expected ") != std::string::npos);
  CHECK(failure_of_case(paged_decode, "state_pool", 2).laws() == "E12, with E6");
  CHECK(failure_of_case(paged_decode, "state_pool", 4).laws() == "E12, with E6");
  CHECK(failure_of_case(paged_decode, "output", 0).laws() == "E1, with E6, E10");
  CHECK(failure_of_case(paged_decode, "output", 0).place == "lane 0, token 0, head 0, element 0");
  CHECK(failure_of_case(paged_prefill, "output_state", 4).laws() == "E1, with E8, E6, E11");
  CHECK(failure_of_case(paged_prefill, "output_state", 0).laws() == "E11, with E8, E6");
  CHECK(failure_of_case(paged_prefill, "output_state", 0).place == "page 0, head 0, v 0, k 0");
  // The page table's own results keep their law and place.
  const Failure slots = [&] {
    FakeBackend fake;
    fake.after = [](const Call& call) {
      if (call.op() == QUIRE_OP_GDN_DECODE_SLOTS) quire::conformance::change_element(call, "state_indices", 0);
    };
    quire::conformance::Judging judging(fake.backend(), quire::backend("reference"));
    return run_case({"paged", 0}, json::parse(paged_decode), judging, nullptr).value();
  }();
  CHECK(slots.laws() == "E12");
  CHECK(slots.place == "sequence 0");
}
