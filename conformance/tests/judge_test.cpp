// The judge: wrong elements of exact results, and backends that misbehave otherwise.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "case/evaluate.h"
#include "fake_backend.h"
#include "judge/judge_call.h"
#include "judged.h"
#include "run/runner.h"

namespace {

using nlohmann::json;
using quire::Call;
using quire::conformance::CallVerdict;
using quire::conformance::change_element;
using quire::conformance::FakeBackend;
using quire::conformance::judged;
using quire::conformance::judged_one;
using quire::conformance::set_element;
using Status = CallVerdict::Status;

// One exact result, one element of it changed, and what the verdict must say.
struct Exact {
  const char* test_case;
  const char* tensor;
  std::int64_t element;
  const char* op;
  const char* law;
  const char* place;
  const char* expected;
  const char* got;
};

// Worked out from the laws: what stands at the element, and one more in its lowest byte.
const Exact exact_results[] = {
    {R"({"op":"positions","index":{"pos":[[-1,0],[1,2]],"table":[[0,1,2],[3,4,5]]}})", "positions", 3, "positions", "A12",
     "lane 1, token 1", "2", "3"},
    {R"({"op":"mask","index":{"pos":[[0,1]],"table":[[3,4,5]]}})", "mask", 5, "mask", "B1", "lane 0, token 1, column 2", "0", "1"},
    {R"({"op":"mask","index":{"whole":{"batch":2,"seq":2}}})", "mask", 5, "mask", "B2", "lane 1, token 0, column 1", "0", "1"},
    {R"({"op":"mask","index":{"packed":{"seq":2,"lens":[[1,1]]}}})", "mask", 2, "mask", "B2", "lane 0, token 1, column 0", "0", "1"},
    {R"({"op":"mask","index":{"pos":[[1]],"table":[[3,4]],"then":[{"draft":{"slots":[[5]],"sees":[[[true]]]}}]}})", "mask", 1, "mask", "B4",
     "lane 0, token 0, column 1", "0", "1"},
    {R"({"op":"mask","index":{"pos":[[0,0]],"table":[[3,4]],"then":[{"select":[[[0,1],[1,0]]]}]}})", "mask", 2, "mask", "B5",
     "lane 0, token 1, choice 0", "0", "1"},
    {R"({"op":"extend","index":{"pos":[[1]],"table":[[2,0]]},"values":[[[7,8]]],"pool":[[1,2],[3,4],[5,6]]})", "pool", 3, "extend", "C3",
     "slot 1, element 1", "4", "4.000000476837158"},
    {R"({"op":"extend","index":{"pos":[[1]],"table":[[2,0]]},"values":[[[7,8]]],"pool":[[1,2],[3,4],[5,6]]})", "seen", 0, "extend", "C5",
     "lane 0, column 0, element 0", "5", "5.000000476837158"},
    {R"({"op":"extend","index":{"pos":[[0]],"table":[[0,1]],"then":[{"select":[[[1,0]]]}]},"values":{"dtype":"i8","shape":[1,1,1],"data":[7]},"pool":{"dtype":"i8","shape":[2,1],"data":[1,2]}})",
     "seen", 1, "extend", "C6", "lane 0, token 0, choice 1, element 0", "7", "8"},
    {R"({"op":"extend","index":{"whole":{"batch":1,"seq":2}},"values":{"dtype":"u8","shape":[1,2,1],"data":[7,9]}})", "seen", 1, "extend",
     "C7", "lane 0, column 1, element 0", "9", "10"},
    {R"({"op":"extend","index":{"pos":[[0]],"table":[[0]],"then":[{"draft":{"slots":[[1]],"sees":[[[true]]]}}]},"values":{"dtype":"i8","shape":[1,1,1],"data":[7]},"pool":{"dtype":"i8","shape":[2,1],"data":[1,2]}})",
     "seen", 1, "extend", "C7", "lane 0, column 1, element 0", "7", "8"},
    {R"({"op":"attend","index":{"pos":[[0]],"table":[[1]]},"q":[[[[1,1]]]],"k":[[[[1,1]]]],"v":[[[[1,1]]]],"k_pool":[[[2,2]],[[3,3]]],"v_pool":[[[4,4]],[[5,5]]]})",
     "k_pool", 1, "attend", "C3", "slot 0, head 0, element 1", "2", "2.000000238418579"},
    {R"({"op":"gdn_prefill_slots","cu_seqlens":[0,1,65],"page_indices":[4,5,6],"page_indptr":[0,1,3],"last_page_len":[1,2],"page_size":64})",
     "prefix_lens", 1, "gdn_prefill_slots", "E11", "sequence 1", "2", "3"},
    {R"({"op":"gdn_decode_slots","page_indices":[4,5,6],"page_indptr":[0,1,3],"last_page_len":[2,1],"page_size":64})", "state_indices", 1,
     "gdn_decode_slots", "E12", "sequence 1", "5", "6"},
};

const char* const extend_case = R"({"op":"extend","index":{"pos":[[1]],"table":[[2,0]]},"values":[[[7,8]]],"pool":[[1,2],[3,4],[5,6]]})";
const char* const attend_case =
    R"({"op":"attend","index":{"pos":[[1]],"table":[[0,1]]},"q":[[[[1,1]]]],"k":[[[[1,1]]]],"v":[[[[1,1]]]],"k_pool":[[[2,2]],[[3,3]]],"v_pool":[[[4,4]],[[5,5]]]})";

}  // namespace

TEST_CASE("judge: one wrong element of an exact result fails, and the verdict says which") {
  for (const Exact& exact : exact_results) {
    INFO(exact.test_case);
    FakeBackend fake;
    const json test_case = json::parse(exact.test_case);
    CHECK(judged_one(test_case, fake.backend()).status == Status::passed);
    fake.after = [&](const Call& call) { change_element(call, exact.tensor, exact.element); };
    const CallVerdict verdict = judged_one(test_case, fake.backend());
    CHECK(verdict.status == Status::failed);
    CHECK(verdict.failure.op == exact.op);
    CHECK(verdict.failure.law == exact.law);
    CHECK(verdict.failure.also.empty());
    CHECK(verdict.failure.tensor == exact.tensor);
    CHECK(verdict.failure.place == exact.place);
    CHECK(verdict.failure.what == "must be equal bit for bit");
    CHECK(verdict.failure.expected == exact.expected);
    CHECK(verdict.failure.got == exact.got);
    CHECK(verdict.failure.tolerance.empty());
    CHECK(verdict.failure.message == std::string(exact.op) + " " + exact.tensor + " at " + exact.place + ": must be equal bit for bit (" +
                                         exact.law + "): expected " + exact.expected + ", got " + exact.got);
  }
}

TEST_CASE("judge: the first wrong element is the one that is told") {
  FakeBackend fake;
  fake.after = [](const Call& call) {
    change_element(call, "seen", 3);
    change_element(call, "seen", 2);
  };
  CHECK(judged_one(json::parse(extend_case), fake.backend()).failure.place == "lane 0, column 1, element 0");
}

TEST_CASE("judge: the op advance, which no op of a case reaches") {
  FakeBackend fake;
  const quire::conformance::CaseLine line{"index", 0};
  const json test_case = json::parse(R"({"op":"index","index":{"pos":[[0,1],[2,-1]],"table":[[3,4,5],[6,7,8]]}})");
  quire::conformance::Judging judging(fake.backend(), quire::backend("reference"));
  CHECK_FALSE(run_case(line, test_case, judging, nullptr).has_value());
  fake.after = [](const Call& call) { change_element(call, "positions", 1); };
  const auto failure = run_case(line, test_case, judging, nullptr);
  REQUIRE(failure.has_value());
  CHECK(failure->message == "advance positions at lane 1, token 0: must be equal bit for bit (A11): expected 3, got 4");
}

TEST_CASE("judge: the sign of zero and the bits of a NaN are bits") {
  FakeBackend fake;
  const json zero = json::parse(R"({"op":"extend","index":{"whole":{"batch":1,"seq":1}},"values":[[[0]]]})");
  fake.after = [](const Call& call) { set_element(call, "seen", 0, -0.0); };
  CHECK(judged_one(zero, fake.backend()).failure.got == "-0");
  const json nan =
      json::parse(R"({"op":"extend","index":{"whole":{"batch":1,"seq":1}},"values":{"dtype":"f32","shape":[1,1,1],"data":["nan"]}})");
  fake.after = [](const Call& call) { change_element(call, "seen", 0); };
  CHECK(judged_one(nan, fake.backend()).status == Status::failed);
}

TEST_CASE("judge: an element left unwritten is reported as that") {
  FakeBackend fake;
  const json test_case = json::parse(extend_case);
  // Puts back what the result held before the call, which is another pattern in each run.
  std::vector<std::byte> kept(2 * sizeof(float));
  fake.before = [&](const Call& call) { std::memcpy(kept.data(), call.tensor("seen")->data, kept.size()); };
  fake.after = [&](const Call& call) { std::memcpy(call.tensor("seen")->data, kept.data(), kept.size()); };
  const CallVerdict verdict = judged_one(test_case, fake.backend());
  CHECK(verdict.failure.what == "is not written");
  CHECK(verdict.failure.place == "lane 0, column 0, element 0");
  CHECK(verdict.failure.law == "C5");
}

TEST_CASE("judge: a backend that counts on what a result held before the call is found out") {
  FakeBackend fake;
  std::byte before{};
  fake.before = [&](const Call& call) { before = *static_cast<const std::byte*>(call.tensor("seen")->data); };
  fake.after = [&](const Call& call) { *static_cast<std::byte*>(call.tensor("seen")->data) = before ^ std::byte{1}; };
  CHECK(judged_one(json::parse(extend_case), fake.backend()).failure.what == "differs from one run to the next, which is captured and launched");
}

TEST_CASE("judge: a number read outside a tensor shows") {
  FakeBackend fake;
  const json test_case = json::parse(attend_case);
  fake.after = [](const Call& call) {
    // The value behind the row of v, where only poison stands.
    const auto* v = static_cast<const float*>(call.tensor("v")->data);
    set_element(call, "out", 0, static_cast<double>(v[0]) + 0 * static_cast<double>(v[2]));
  };
  CHECK(judged_one(test_case, fake.backend()).failure.what == "is not a number");
}

TEST_CASE("judge: a backend that changes from one run to the next fails, whatever it gives first") {
  FakeBackend fake;
  const json test_case = json::parse(attend_case);
  fake.after = [&](const Call& call) {
    if (fake.runs % 2 == 0) change_element(call, "out", 0);
  };
  const CallVerdict verdict = judged_one(test_case, fake.backend());
  CHECK(verdict.failure.what == "differs from one run to the next, which is captured and launched");
  CHECK(verdict.failure.place == "lane 0, token 0, head 0, element 0");
  // Both are told.
  CHECK(verdict.failure.got.find(", then ") != std::string::npos);
  CHECK(fake.runs == 2);
}

TEST_CASE("judge: a backend that overwrites its inputs fails, by the input's name") {
  for (const char* tensor : {"index.pos", "index.table", "q", "k", "v"}) {
    FakeBackend fake;
    fake.after = [&](const Call& call) { change_element(call, tensor, 0); };
    const CallVerdict verdict = judged_one(json::parse(attend_case), fake.backend());
    CHECK(verdict.status == Status::failed);
    CHECK(verdict.failure.law == "ABI");
    CHECK(verdict.failure.message == std::string("attend: ") + tensor + ": byte 0 of its memory was changed, which the call may not write");
  }
}

TEST_CASE("judge: an error after supports said yes is a failure, in either run, whatever the status") {
  const json test_case = json::parse(extend_case);
  for (const quire_status status :
       std::initializer_list<quire_status>{QUIRE_INVALID_ARGUMENT, QUIRE_UNSUPPORTED, QUIRE_UNAVAILABLE, QUIRE_INTERNAL, 99, -1}) {
    for (const int failing : {1, 2}) {
      FakeBackend fake;
      fake.run = [&](quire_op op, const void* args) {
        return fake.runs == failing ? status : quire::backend("reference").table().run(nullptr, op, args, nullptr, 0);
      };
      const CallVerdict verdict = judged_one(test_case, fake.backend());
      CHECK(verdict.status == Status::failed);
      CHECK(verdict.failure.law == "ABI");
      // The second run is a captured step.
      CHECK(verdict.failure.message == std::string(failing == 1 ? "extend: run" : "extend: capture or launch") + ", after supports said yes, failed: planted");
    }
  }
}

TEST_CASE("judge: what a backend throws is its failure") {
  FakeBackend fake;
  fake.run = [](quire_op, const void*) -> quire_status { throw std::runtime_error("thrown"); };
  CHECK(judged_one(json::parse(extend_case), fake.backend()).failure.message == "extend: run, after supports said yes, failed: thrown");
  fake.run = [](quire_op, const void*) -> quire_status { throw 7; };
  CHECK(judged_one(json::parse(extend_case), fake.backend()).failure.message ==
        "extend: run, after supports said yes, threw something, which nothing may across the ABI");
}

TEST_CASE("judge: a call that is not supported is that and no failure, and is not run") {
  FakeBackend fake;
  fake.supports = [](quire_op op, const void*) { return op == QUIRE_OP_EXTEND ? QUIRE_UNSUPPORTED : QUIRE_OK; };
  const CallVerdict verdict = judged_one(json::parse(extend_case), fake.backend());
  CHECK(verdict.status == Status::unsupported);
  CHECK(verdict.reason == "planted");
  CHECK(fake.runs == 0);
  fake.message.clear();
  CHECK(judged_one(json::parse(extend_case), fake.backend()).reason == "it gives no reason");
  CHECK(judged_one(json::parse(attend_case), fake.backend()).status == Status::passed);
}

TEST_CASE("judge: supports and contract that fail are the backend's failure") {
  FakeBackend fake;
  for (const quire_status status : std::initializer_list<quire_status>{QUIRE_INVALID_ARGUMENT, QUIRE_UNAVAILABLE, QUIRE_INTERNAL, 99}) {
    fake.supports = [status](quire_op, const void*) { return status; };
    CHECK(judged_one(json::parse(extend_case), fake.backend()).failure.message == "extend: supports failed: planted");
  }
  fake.supports = nullptr;
  fake.contract_status = QUIRE_INTERNAL;
  CHECK(judged_one(json::parse(attend_case), fake.backend()).failure.message == "attend: contract failed: planted");
  CHECK(fake.runs == 0);
}

TEST_CASE("judge: a contract that no arithmetic has is refused, for its tolerance would accept anything") {
  const auto verdict_of = [](const std::function<void(quire_contract&)>& change) {
    FakeBackend fake;
    quire_contract contract = quire::conformance::float32_contract();
    change(contract);
    fake.contract = contract;
    return judged_one(json::parse(attend_case), fake.backend());
  };
  CHECK(verdict_of([](quire_contract&) {}).status == Status::passed);
  CHECK(verdict_of([](quire_contract& c) { c.u_product = c.u_store = 0x1p-3; }).status == Status::passed);
  CHECK(verdict_of([](quire_contract& c) { c.u_product = 0.126; }).failure.message ==
        "attend: contract failed: u_product: 0.126; allowed: 0 to 2^-3");
  CHECK(verdict_of([](quire_contract& c) { c.u_accumulate = INFINITY; }).failure.message ==
        "attend: contract failed: u_accumulate: inf; allowed: 0 to 2^-3");
  CHECK(verdict_of([](quire_contract& c) { c.u_store = -0x1p-24; }).status == Status::failed);
  CHECK(verdict_of([](quire_contract& c) { c.u_exp = NAN; }).status == Status::failed);
  CHECK(verdict_of([](quire_contract& c) { c.chunk_length = 0; }).failure.message ==
        "attend: contract failed: chunk_length: 0; allowed: 1 or more");
}

TEST_CASE("judge: whatever the candidate did, the caller has the reference's results") {
  const json test_case = json::parse(extend_case);
  const std::string right = quire::conformance::evaluate(test_case, {{&quire::backend("reference"), nullptr}, {}, {}}).text;
  const auto text_with = [&](const FakeBackend& fake) {
    const quire::conformance::Judging judging(fake.backend(), quire::backend("reference"));
    return quire::conformance::evaluate(test_case, {{&judging.backend(), nullptr}, {}, {}}).text;
  };
  FakeBackend fake;
  fake.after = [](const Call& call) { change_element(call, "pool", 0); };
  CHECK(text_with(fake) == right);
  fake.run = [](quire_op, const void*) { return QUIRE_INTERNAL; };
  CHECK(text_with(fake) == right);
  fake.supports = [](quire_op, const void*) { return QUIRE_UNSUPPORTED; };
  CHECK(text_with(fake) == right);
  fake.supports = [](quire_op, const void*) { return QUIRE_INTERNAL; };
  CHECK(text_with(fake) == right);
}

TEST_CASE("judge: reserved pools are compared in every row that a run used") {
  // One token stored in the last of 2^31 bytes and more.
  const json test_case = json::parse(
      R"({"op":"extend","index":{"pos":[[0]],"table":[[32769]]},"values":{"dtype":"i8","shape":[1,1,65536],"data":[]},"pool":{"dtype":"i8","shape":[32770,65536],"rows":{}}})");
  json filled = test_case;
  for (int n = 0; n < 65536; ++n) filled["values"]["data"].push_back(3);
  FakeBackend fake;
  CHECK(judged_one(filled, fake.backend()).status == Status::passed);
  const auto poke = [&](std::int64_t at) {
    fake.after = [at](const Call& call) { static_cast<std::byte*>(call.tensor("pool")->data)[at] = std::byte{9}; };
    return judged_one(filled, fake.backend()).failure;
  };
  CHECK(poke(32769LL * 65536 + 5).place == "slot 32769, element 5");
  // A row that the reference never touched.
  const auto failure = poke(100LL * 65536 + 7);
  CHECK(failure.place == "slot 100, element 7");
  CHECK(failure.expected == "0");
  CHECK(failure.got == "9");
}

TEST_CASE("judge: judges may be nested, the youngest judges and the elder goes on after it") {
  FakeBackend fake;
  quire::conformance::Judging outer(fake.backend(), quire::backend("reference"));
  {
    quire::conformance::Judging inner(quire::backend("reference"), quire::backend("reference"));
    quire::conformance::evaluate(json::parse(extend_case), {{&inner.backend(), nullptr}, {}, {}});
    CHECK(inner.take().size() == 1);
    CHECK(fake.runs == 0);
  }
  quire::conformance::evaluate(json::parse(extend_case), {{&outer.backend(), nullptr}, {}, {}});
  CHECK(fake.runs == 2);
  CHECK(outer.take().size() == 1);
  CHECK(outer.take().empty());
}

TEST_CASE("judge: each step of a program has its verdict") {
  FakeBackend fake;
  fake.after = [](const Call& call) {
    if (call.op() == QUIRE_OP_MASK) change_element(call, "mask", 0);
  };
  const json program{{"steps", json::array({json::parse(extend_case), json::parse(exact_results[1].test_case), json::parse(extend_case)})}};
  const auto verdicts = judged(program, fake.backend());
  REQUIRE(verdicts.size() == 3);
  CHECK(verdicts[0].status == Status::passed);
  CHECK(verdicts[1].status == Status::failed);
  CHECK(verdicts[2].status == Status::passed);
}

TEST_CASE("judge: a candidate that does not read the host's memory is asked about, and gets, tensors on its device") {
  static constexpr quire_device device = {QUIRE_DEVICE_EXTENSION, 4};
  static const quire_backend_table& reference = quire::backend("reference").table();
  static const auto on_device = [](const Call& call) {
    return std::all_of(call.tensors().begin(), call.tensors().end(),
                       [](const auto& entry) { return entry.tensor->device.type == device.type && entry.tensor->device.id == device.id; });
  };
  quire_backend_table table = reference;
  table.device_info = [](std::int32_t, quire_device_info* info) {
    *info = {sizeof *info, device, "of its own memory", 0, 0};
    return quire_status{QUIRE_OK};
  };
  table.supports = [](quire_op op, const void* args) { return quire_status{on_device(Call(op, args)) ? QUIRE_OK : QUIRE_UNSUPPORTED}; };
  table.run = [](quire_stream* stream, quire_op op, const void* args, void* workspace, std::size_t bytes) {
    Call call(op, args);
    if (!on_device(call)) return quire_status{QUIRE_INTERNAL};
    for (const auto& entry : call.tensors()) entry.tensor->device = {QUIRE_DEVICE_CPU, 0};
    return reference.run(stream, op, call.args(), workspace, bytes);
  };
  table.capture = [](quire_device, const quire_call*, std::int32_t, quire_step**) { return quire_status{QUIRE_UNSUPPORTED}; };
  const quire::Backend candidate(&table, "(test)");
  const CallVerdict verdict = judged_one(json::parse(extend_case), candidate);
  CHECK_MESSAGE(verdict.status == Status::passed, verdict.reason, verdict.failure.message);
}
