// The table of laws: what a case exercises, worked out by hand from the laws' text. Sets are compared whole, so each law is also shown
// absent.
#include "run/laws.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

namespace {

using nlohmann::json;
using quire::conformance::all_laws;
using quire::conformance::dtypes_of;
using quire::conformance::laws_of;
using quire::conformance::ops_of;

struct Row {
  const char* test_case;
  const char* laws;  // in the order of a set of strings
};

const Row rows[] = {
    // A: forms and builders. The op `index` shows nothing else.
    {R"({"op":"index","index":{"pos":[[0]],"table":[[0]]}})", "A1"},
    {R"({"op":"index","index":{"pos":[[0]],"table":[[0]],"row":[0]}})", "A1 A2"},
    {R"({"op":"index","index":{"pos":[[0]],"table":[[0]],"every":[{"m":2,"blocks":[[0]]}]}})", "A1 A3"},
    {R"({"op":"index","index":{"rows":{"context":2,"lens":[1]}}})", "A4"},
    {R"({"op":"index","index":{"rows":{"context":2,"lens":[1],"every":[2]}}})", "A3 A4"},
    {R"({"op":"index","index":{"whole":{"batch":1,"seq":2}}})", "A5"},
    {R"({"op":"index","index":{"packed":{"seq":2,"lens":[[1,1]]}}})", "A6"},
    {R"({"op":"index","index":{"whole":{"batch":1,"seq":2},"then":[{"window":1}]}})", "A5 A7"},
    {R"({"op":"index","index":{"whole":{"batch":1,"seq":1},"then":[{"select":[[[0]]]}]}})", "A5 A8"},
    {R"({"op":"index","index":{"pos":[[0]],"table":[[0]],"then":[{"draft":{"slots":[[1]],"sees":[[[true]]]}}]}})", "A1 A9"},
    {R"({"op":"index","index":{"whole":{"batch":1,"seq":2},"then":[{"every":2}]}})", "A10 A5"},
    {R"({"op":"index","index":{"pos":[[0]],"table":[[0]],"then":[{"advance":true}]}})", "A1 A11"},
    {R"({"op":"positions","index":{"whole":{"batch":1,"seq":2}}})", "A12 A5"},
    // B: what a token sees.
    {R"({"op":"mask","index":{"pos":[[0]],"table":[[0]]}})", "A1 B1 B6"},
    {R"({"op":"mask","index":{"whole":{"batch":1,"seq":2}}})", "A5 B2 B6"},
    {R"({"op":"mask","index":{"packed":{"seq":2,"lens":[[1,1]]}}})", "A6 B2 B6"},
    {R"({"op":"mask","index":{"whole":{"batch":1,"seq":2},"then":[{"every":2}]}})", "A10 A5 B2 B3 B6"},
    {R"({"op":"mask","index":{"whole":{"batch":1,"seq":2},"then":[{"every":1}]}})", "A10 A5 B2 B6"},
    {R"({"op":"mask","index":{"pos":[[0]],"table":[[0]],"then":[{"draft":{"slots":[[1]],"sees":[[[true]]]}}]}})", "A1 A9 B4 B6"},
    {R"({"op":"mask","index":{"pos":[[0]],"table":[[0]],"then":[{"draft":{"slots":[[1]],"sees":[[[true]]]}},{"advance":true}]}})",
     "A1 A11 A9 B1 B6"},
    {R"({"op":"mask","index":{"pos":[[0]],"table":[[0]],"then":[{"select":[[[0]]]}]}})", "A1 A8 B1 B5 B6"},
    {R"({"op":"mask","index":{"pos":[[0]],"table":[[0]],"then":[{"select":[[[0]]]},{"advance":true}]}})", "A1 A11 A8 B1 B6"},
    {R"({"op":"mask","index":{"pos":[[1]],"table":[[0]]}})", "A1 B1 B6 B7"},
    {R"({"op":"mask","index":{"pos":{"dtype":"i64","shape":[1,1],"data":[2]},"table":{"dtype":"i64","shape":[1,2],"data":[0,1]}}})",
     "A1 B1 B6 B7"},
    {R"({"op":"mask","index":{"pos":{"dtype":"i64","shape":[1,1],"data":[1]},"table":{"dtype":"i64","shape":[1,2],"data":[0,1]}}})",
     "A1 B1 B6"},
    // C: pools.
    {R"({"op":"extend","index":{"pos":[[0]],"table":[[0]]},"values":[[[1]]],"pool":[[1]]})", "A1 B1 C1 C2 C3 C4 C5 C9"},
    {R"({"op":"extend","index":{"pos":[[0]],"table":[[0]],"then":[{"select":[[[0]]]}]},"values":[[[1]]],"pool":[[1]]})",
     "A1 A8 B1 B5 C1 C2 C3 C4 C6 C9"},
    {R"({"op":"extend","index":{"pos":[[0]],"table":[[0]],"then":[{"draft":{"slots":[[1]],"sees":[[[true]]]}}]},"values":[[[1]]],"pool":[[1],[2]]})",
     "A1 A9 B4 C1 C2 C3 C4 C5 C7 C9"},
    {R"({"op":"extend","index":{"whole":{"batch":1,"seq":1}},"values":[[[1]]]})", "A5 B2 C1 C7 C9"},
    {R"({"op":"extend","index":{"whole":{"batch":1,"seq":1},"then":[{"select":[[[0]]]}]},"values":[[[1]]]})", "A5 A8 B2 B5 C1 C6 C7 C9"},
    {R"({"op":"extend","index":{"pos":[[0]],"table":[[0]]},"values":[[[1]]],"pool":{"dtype":"f32","shape":[1,1],"data":["nan"]}})",
     "A1 B1 C1 C2 C3 C4 C5 C8 C9"},
    {R"({"op":"extend","index":{"pos":[[0]],"table":[[0]]},"values":{"dtype":"f32","shape":[1,1,1],"data":["inf"]},"pool":[[1]]})",
     "A1 B1 C1 C2 C3 C4 C5 C9"},
    // D: attention.
    {R"({"op":"attend","index":{"whole":{"batch":1,"seq":1}},"q":[[[[1]]]],"k":[[[[1]]]],"v":[[[[1]]]]})", "A5 B2 C1 C7 C9 D1 D2 D3"},
    {R"({"op":"attend","index":{"whole":{"batch":1,"seq":1}},"q":[[[[1]]]],"k":[[[[1]]]],"v":[[[[1]]]],"softcap":2})",
     "A5 B2 C1 C7 C9 D1 D2 D3 D4"},
    {R"({"op":"attend","index":{"whole":{"batch":1,"seq":1}},"q":[[[[1]]]],"k":[[[[1]]]],"v":[[[[1]]]],"sinks":[0]})",
     "A5 B2 C1 C7 C9 D1 D2 D3 D4"},
    // E: the rule. Prefill normalises when it is told to, decode and verify unless they are told not to.
    {R"({"op":"gdn_prefill","cu_seqlens":[0,1]})", "E1 E4 E5"},
    {R"({"op":"gdn_prefill","cu_seqlens":[0,1],"use_qk_l2norm":true})", "E1 E2 E4 E5"},
    {R"({"op":"gdn_prefill","cu_seqlens":[0,1],"state_indices":[0]})", "E1 E4 E5 E6"},
    {R"({"op":"gdn_prefill","cu_seqlens":[0,1],"checkpoint_every_n_tokens":64})", "E1 E4 E5 E7"},
    {R"({"op":"gdn_prefill","cu_seqlens":[0,1],"output_state":"initial_state"})", "E1 E4 E5 E8"},
    {R"({"op":"gdn_prefill","cu_seqlens":[0,1],"output_state":{"dtype":"f32","shape":[1,1,1,1],"row_stride":2,"data":[1]}})",
     "E1 E4 E5 E8"},
    {R"({"op":"gdn_prefill","cu_seqlens":[0,1],"output_state":{"dtype":"f32","shape":[1,1,1,1],"data":[1]}})", "E1 E4 E5"},
    {R"({"op":"gdn_decode","state_indices":[0]})", "E1 E2 E5 E6"},
    {R"({"op":"gdn_decode","state_indices":[0],"use_qk_l2norm":false,"A_log":[0]})", "E1 E3 E5 E6"},
    {R"({"op":"gdn_decode","state_indices":[0],"use_qk_l2norm":false,"state_pool":{"dtype":"f32","shape":[1,1,1,1],"row_stride":2,"data":[1]}})",
     "E1 E5 E6 E8"},
    {R"({"op":"gdn_prefill_slots","cu_seqlens":[0,1],"page_indices":[0],"page_indptr":[0,1]})", "E10 E11"},
    {R"({"op":"gdn_decode_slots","page_indices":[0],"page_indptr":[0,1]})", "E10 E12"},
    {R"({"op":"gdn_decode_slots","page_indices":[0],"page_indptr":[0,1,1]})", "E10 E12 E14"},
    {R"({"op":"gdn_prefill_paged","cu_seqlens":[0,1],"page_indices":[0],"page_indptr":[0,1]})", "E1 E10 E11 E4 E5"},
    {R"({"op":"gdn_prefill_paged","cu_seqlens":[0,0,1],"page_indices":[0,1],"page_indptr":[0,1,2]})", "E1 E10 E11 E14 E4 E5"},
    {R"({"op":"gdn_decode_paged","use_qk_l2norm":false,"page_indices":[0],"page_indptr":{"dtype":"i32","shape":[3],"data":[0,0,1]}})",
     "E1 E10 E12 E14 E5"},
    // F: both at once.
    {R"({"op":"page_table","page_size":64,"index":{"rows":{"context":64,"lens":[1],"every":[64]}}})", "A3 A4 F1"},
    {R"({"op":"gdn_verify","index":{"pos":[[0]],"table":[[0]],"then":[{"draft":{"slots":[[1]],"sees":[[[true]]]}}]},"state_indices":[0]})",
     "A1 A9 E1 E2 E5 E6 F2"},
    {R"({"op":"check","index":{"pos":[[0]],"table":[[0]]}})", "A1 F3"},
    // Refusals: the generator's, whose id names the argument, and golden ones, which expect the error.
    {R"({"op":"attend","id":"k: heads of another count","index":{"pos":[[0]],"table":[[0]]}})", "D5"},
    {R"({"op":"extend","id":"pool: rows of another width","index":{"pos":[[0]],"table":[[0]]}})", "D5"},
    {R"({"op":"attend","id":"pos: a wrong shape","index":{"pos":[[0]],"table":[[0]]}})", ""},
    {R"({"op":"mask","id":"window: not positive","index":{"pos":[[0]],"table":[[0]]}})", ""},
    {R"({"op":"gdn_prefill","id":"cu_seqlens: bounds that fall","cu_seqlens":[0,1]})", "E9"},
    {R"({"op":"gdn_prefill_paged","id":"q: a wrong shape","cu_seqlens":[0,1],"page_indptr":[0,1]})", "E9"},
    {R"({"op":"gdn_prefill_paged","id":"page_indices: a page outside","cu_seqlens":[0,1],"page_indptr":[0,1]})", "E13"},
    {R"({"op":"gdn_decode_slots","id":"last_page_len: 0","page_indptr":[0,1]})", "E13"},
    {R"({"op":"page_table","id":"index: a draft","page_size":64})", "F1"},
    {R"({"op":"gdn_verify","id":"state_slots: twice"})", "E9 F2"},
    {R"({"op":"attend","id":"D5: heads","expect":{"status":"error","argument":"q"},"index":{"pos":[[0]],"table":[[0]]}})", "D5"},
    {R"({"op":"mask","id":"B1: a column","expect":{"mask":[[[true]]]},"index":{"pos":[[0]],"table":[[0]]}})", "A1 B1 B6"},
    // Programs: every step, each with its own expectation.
    {R"({"steps":[{"op":"mask","index":{"whole":{"batch":1,"seq":2}}},{"op":"gdn_decode","use_qk_l2norm":false}]})", "A5 B2 B6 E1 E5"},
    {R"({"id":"a program","steps":[{"op":"check","index":{"pos":[[0]],"table":[[0]]}},{"op":"gdn_decode"}],"expect":[{"findings":[]},{"status":"error","argument":"q"}]})",
     "A1 E9 F3"},
    {R"({"steps":[{"op":"gdn_decode","expect":{"status":"error","argument":"q"}},{"op":"page_table"}]})", "E9 F1"},
    {R"({"steps":[{"capture":[{"op":"mask","index":{"whole":{"batch":1,"seq":2}}}],"as":"s"}]})", "A5 B2 B6"},
    {R"({"steps":[{"launch":"s"}]})", "A14"},
    {R"({"steps":[{"to":0,"index":{"pos":[[0]],"table":[[0]]},"as":"d"}]})", "A1 A15"},
    {R"({"steps":[{"to":0,"q":[[0]],"as":"d"}]})", ""},
    {R"({"steps":[]})", ""},
    {R"({"op":"nothing"})", ""},
};

}  // namespace

TEST_CASE("laws: what each case exercises, and what it does not") {
  for (const Row& row : rows) {
    const auto laws = laws_of(json::parse(row.test_case));
    CHECK_MESSAGE(fmt::format("{}", fmt::join(laws, " ")) == row.laws, row.test_case);
  }
}

TEST_CASE("laws: the table above shows every law present and absent") {
  for (const std::string& law : all_laws()) {
    const auto count =
        std::count_if(std::begin(rows), std::end(rows), [&](const Row& row) { return laws_of(json::parse(row.test_case)).contains(law); });
    CHECK_MESSAGE(count > 0, law);
    CHECK_MESSAGE(count < std::end(rows) - std::begin(rows), law);
  }
}

TEST_CASE("laws: calls that need an op which is not there exercise none") {
  const json program =
      json::parse(R"({"steps":[{"op":"mask","index":{"whole":{"batch":1,"seq":2}}},{"op":"gdn_decode","use_qk_l2norm":false}]})");
  CHECK(laws_of(program, {"mask"}) == std::set<std::string>{"E1", "E5"});
  CHECK(laws_of(program, {"gdn_decode"}) == std::set<std::string>{"A5", "B2", "B6"});
  CHECK(laws_of(program, {"mask", "gdn_decode"}).empty());
  CHECK(laws_of(program, {"attend"}) == laws_of(program));
  // A paged op needs the page table's op and the rule's.
  const json paged = json::parse(R"({"op":"gdn_prefill_paged","cu_seqlens":[0,1],"page_indices":[0],"page_indptr":[0,1]})");
  CHECK_FALSE(laws_of(paged, {"gdn_decode", "gdn_decode_slots"}).empty());
  CHECK(laws_of(paged, {"gdn_prefill"}).empty());
  CHECK(laws_of(paged, {"gdn_prefill_slots"}).empty());
  CHECK_FALSE(laws_of(json::parse(R"({"op":"gdn_prefill_slots","page_indptr":[0,1]})"), {"gdn_prefill"}).empty());
}

TEST_CASE("laws: all of them, in order, once") {
  const std::vector<std::string>& laws = all_laws();
  // A1-A12, A14, A15, B1-B7, C1-C9, D1-D5, E1-E14, F1-F3. A13, that nothing changes an index, is a property of the C++ value.
  const std::pair<char, int> parts[] = {{'A', 12}, {'B', 7}, {'C', 9}, {'D', 5}, {'E', 14}, {'F', 3}};
  std::vector<std::string> wanted;
  for (const auto& [letter, count] : parts) {
    for (int n = 1; n <= count; ++n) wanted.push_back(letter + std::to_string(n));
    if (letter == 'A') wanted.insert(wanted.end(), {"A14", "A15"});
  }
  CHECK(laws == wanted);
  for (const Row& row : rows) {
    for (const std::string& law : laws_of(json::parse(row.test_case))) CHECK(std::count(laws.begin(), laws.end(), law) == 1);
  }
}

TEST_CASE("laws: ops and dtypes of cases and programs") {
  CHECK(ops_of(json::parse(R"({"op":"mask"})")) == std::set<std::string>{"mask"});
  CHECK(ops_of(json::parse(R"({"steps":[{"op":"mask"},{"op":"extend"},{"op":"mask"}]})")) == std::set<std::string>{"extend", "mask"});
  CHECK(dtypes_of(json::parse(R"({"op":"mask","index":{"pos":[[0]]}})")).empty());
  CHECK(dtypes_of(json::parse(R"({"op":"extend","values":{"dtype":"f16","shape":[0],"data":[]},"index":{"pos":{"dtype":"i64"}}})")) ==
        std::set<std::string>{"f16", "i64"});
  CHECK(dtypes_of(json::parse(R"({"steps":[{"op":"extend","values":{"dtype":"f16"}},{"op":"extend","pool":{"dtype":"u8"}}]})")) ==
        std::set<std::string>{"f16", "u8"});
}
