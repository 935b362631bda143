// Hand-computed cases for the literal implementation: the small ones that break real systems.
#include "literal.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

namespace {

using Json = nlohmann::json;

Json run(const std::string& text) { return quire_literal::eval(Json::parse(text)); }

Json data(const Json& result, const std::string& name) {
  REQUIRE_MESSAGE(result.at("status") == "ok", result.dump());
  return result.at(name).at("data");
}

std::string rejected(const std::string& text) {
  const Json result = run(text);
  REQUIRE_MESSAGE(result.at("status") == "error", result.dump());
  CHECK(result.at("code") == "invalid_argument");
  return result.at("argument").get<std::string>();
}

// One head, K = V = 1, scale 1: q = k = 1 and v = the list, with decay and beta one half.
std::string scalar_tokens(const std::string& v, const std::string& halves) {
  std::string ones = halves;
  for (std::size_t at = ones.find("0.5"); at != std::string::npos; at = ones.find("0.5")) {
    ones.replace(at, 3, "[1]");
  }
  return R"("q":)" + ones + R"(,"k":)" + ones + R"(,"v":)" + v + R"(,"g":)" + halves +
         R"(,"beta":)" + halves + R"(,"scale":1)";
}

}  // namespace

TEST_CASE("A1-A6: the four forms of an index") {
  const Json rows =
      run(R"({"op":"index","index":{"rows":{"context":5,"lens":[3,1],"every":[2]}}})");
  CHECK(rows["kind"] == "tabled");
  CHECK(data(rows, "pos") == Json({0, 1, 2, -1, -1, 0}));
  CHECK(data(rows, "table") == Json({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  CHECK(rows["every"][0]["m"] == 2);
  CHECK(rows["every"][0]["blocks"]["data"] == Json({0, 1, 2, 3, 4, 5}));
  CHECK(rows["row"].is_null());
  const Json whole = run(R"({"op":"index","index":{"whole":{"batch":2,"seq":3,"lens":[3,1]}}})");
  CHECK(data(whole, "pos") == Json({0, 1, 2, -1, -1, 0}));
  const Json packed = run(R"({"op":"index","index":{"packed":{"seq":6,"lens":[[3,2],[4]]}}})");
  CHECK(data(packed, "pos") == Json({-1, 0, 1, 2, 0, 1, -1, -1, 0, 1, 2, 3}));
}

TEST_CASE("A11, A12: advance and clamped positions") {
  const std::string index = R"({"pos":[[4,5,-1],[-7,-1,-1],[1,2,3]],"table":[[0,1,2,3]],
      "row":[0,0,-1])";
  const Json here = run(R"({"op":"positions","index":)" + index + "}}");
  CHECK(data(here, "positions") == Json({3, 3, 0, 0, 0, 0, 0, 0, 0}));
  const Json next = run(R"({"op":"index","index":)" + index + R"(,"then":[{"advance":true}]}})");
  CHECK(data(next, "pos") == Json({6, 0, 0}));
}

TEST_CASE("B1: window W = 4 at p = 5 sees 2..5") {
  const Json result = run(R"({"op":"mask","index":{"pos":[[5]],"table":[[0,1,2,3,4,5,6,7]],
      "then":[{"window":4}]}})");
  CHECK(data(result, "mask") == Json({false, false, true, true, true, true, false, false}));
}

TEST_CASE("B1: a block is seen once it is closed") {
  const Json result = run(R"({"op":"mask","index":{"pos":[[2,3,8]],"table":[[0]],
      "every":[{"m":4,"blocks":[[0,1]]}],"then":[{"every":4},{"window":2}]}})");
  CHECK(data(result, "mask") == Json({false, false, true, false, false, true}));
}

TEST_CASE("B2: packed sequences do not see each other") {
  const Json result = run(R"({"op":"mask","index":{"packed":{"seq":4,"lens":[[1,2]]}}})");
  const Json f = false, t = true;
  CHECK(data(result, "mask") == Json({f, f, f, f, f, t, f, f, f, f, t, f, f, f, t, t}));
}

TEST_CASE("B4: a tree of draft tokens sees its ancestors and what stands before them all") {
  // 0 is the root at position 2; 1 and 2 its children, 3 the child of 2.
  const Json result = run(R"({"op":"mask","index":{"pos":[[2,3,3,4]],"table":[[0,1,2]],
      "then":[{"draft":{"slots":[[4,5,6,7]],"sees":[[[true,false,false,false],
      [true,true,false,false],[true,false,true,false],[true,false,true,true]]]}}]}})");
  const Json f = false, t = true;
  CHECK(data(result, "mask") == Json({t, t, f, t, f, f, f,    //
                                      t, t, f, t, t, f, f,    //
                                      t, t, f, t, f, t, f,    //
                                      t, t, f, t, f, t, t}));
}

TEST_CASE("C3: a padded token, -1 and a position past the row store nothing") {
  const Json result = run(R"({"op":"extend","index":{"pos":[[0,1],[-1,0]],"table":[[1],[3]]},
      "values":[[[10],[11]],[[12],[13]]],"pool":[[7],[7],[7],[7],[7]]})");
  CHECK(data(result, "pool") == Json({7.0, 10.0, 7.0, 13.0, 7.0}));
  CHECK(data(result, "seen") == Json({10.0, 13.0}));
}

TEST_CASE("C5, C8: zero past the lane, below the window, behind a hole; NaN there never shows") {
  const Json result = run(R"({"op":"extend","index":{"pos":[[3]],"table":[[0,1,-1,2,3]],
      "then":[{"window":3}]},"values":[[5]],"pool":["nan",1,2,"nan"]})");
  CHECK(data(result, "seen") == Json({0.0, 1.0, 0.0, 5.0, 0.0}));
  CHECK(data(result, "pool") == Json({"nan", 1.0, 5.0, "nan"}));
}

TEST_CASE("C6: a selection reads the chosen columns in order, twice when chosen twice") {
  const Json result = run(R"({"op":"extend","index":{"pos":[[1]],"table":[[2,0,1]],
      "then":[{"select":[[[1,0,0,2,-1,9]]]}]},"values":[[5]],"pool":[1,2,3]})");
  CHECK(data(result, "seen") == Json({5.0, 3.0, 3.0, 0.0, 0.0, 0.0}));
}

TEST_CASE("C7: blocks of a whole index hold the values of the tokens that close them") {
  const Json result = run(R"({"op":"extend","index":{"whole":{"batch":1,"seq":5,"lens":[4]},
      "then":[{"every":2}]},"values":[[9,1,2,3,4]]})");
  CHECK(data(result, "seen") == Json({2.0, 4.0, 0.0}));
}

TEST_CASE("D1-D4: a hole has the weight of a zero score; sinks; nothing seen") {
  const std::string call = R"("op":"attend","index":{"pos":[[1],[-1]],"table":[[-1,0],[1,2]]},
      "q":[[[[1]]],[[[1]]]],"k":[[[[0]]],[[[0]]]],"v":[[[[4]]],[[[4]]]],
      "k_pool":[[["nan"]],[["nan"]],[["nan"]]],"v_pool":[[["nan"]],[["nan"]],[["nan"]]])";
  const Json result = run("{" + call + "}");
  CHECK(data(result, "out") == Json({2.0, 0.0}));
  CHECK(data(result, "lse")[0].get<double>() == doctest::Approx(0.69314718056));
  CHECK(data(result, "lse")[1] == "-inf");
  CHECK(data(result, "k_pool") == Json({0.0, "nan", "nan"}));
  const Json sunk = run("{" + call + R"(,"sinks":[0]})");
  CHECK(data(sunk, "out")[0].get<double>() == doctest::Approx(4.0 / 3));
  CHECK(data(sunk, "lse")[0].get<double>() == doctest::Approx(1.09861228867));
  CHECK(data(sunk, "lse")[1] == "-inf");
}

TEST_CASE("E: the states of v = 1,2,3,4 are .5, 1.125, 1.78125, 2.4453125") {
  const Json result = run(R"({"op":"gdn_prefill","cu_seqlens":[0,4],"output_final_state":true,)" +
                          scalar_tokens("[[[1]],[[2]],[[3]],[[4]]]", "[[0.5],[0.5],[0.5],[0.5]]") +
                          "}");
  CHECK(data(result, "output") == Json({0.5, 1.125, 1.78125, 2.4453125}));
  CHECK(data(result, "output_state") == Json({2.4453125}));
}

TEST_CASE("F2: verify three tokens, keep two, decode: 2.28125") {
  const Json steps = run(R"({"format":1,"steps":[
      {"op":"gdn_verify","as":"draft","index":{"pos":[[0,1,2]],"table":[[-1,-1,-1]],
       "then":[{"draft":{"slots":[[0,1,2]],
       "sees":[[[true,false,false],[true,true,false],[true,true,true]]]}}]},)" +
                         scalar_tokens("[[[[1]],[[2]],[[3]]]]", "[[[0.5],[0.5],[0.5]]]") +
                         R"(,"use_qk_l2norm":false,"state_pool":[[[[0]]],[[[9]]],[[[9]]],[[[9]]]],
       "state_indices":[0],"state_slots":[[3,1,2]]},
      {"op":"gdn_decode",)" +
                         scalar_tokens("[[[[4]]]]", "[[[0.5]]]") +
                         R"(,"use_qk_l2norm":false,"state_pool":{"ref":"draft.state_pool"},
       "state_indices":[1]}]})");
  CHECK(data(steps[0], "state_pool") == Json({0.0, 1.125, 1.78125, 0.5}));
  CHECK(data(steps[1], "output") == Json({2.28125}));
  CHECK(data(steps[1], "state_pool") == Json({0.0, 2.28125, 1.78125, 0.5}));
}

TEST_CASE("E4: a zero-length sequence writes nothing, or passes its state through") {
  const std::string call = R"({"op":"gdn_prefill","cu_seqlens":[0,3,3,5],"output_final_state":true,
      "initial_state":[[[[1]]],[[[2]]],[[[3]]]],)" +
                           scalar_tokens("[[[1]],[[2]],[[3]],[[4]],[[5]]]",
                                         "[[0.5],[0.5],[0.5],[0.5],[0.5]]");
  // 1: .75, 1.1875, 1.796875; 3: 2.75, 3.1875.
  CHECK(data(run(call + "}"), "output") == Json({0.75, 1.1875, 1.796875, 2.75, 3.1875}));
  CHECK(data(run(call + "}"), "output_state") == Json({1.796875, 2.0, 3.1875}));
  const Json given = run(call + R"(,"output_state":[[[[7]]],[[[7]]],[[[7]]]]})");
  CHECK(data(given, "output_state") == Json({1.796875, 7.0, 3.1875}));
}

TEST_CASE("E6: a padded decode sequence leaves the pool and gives zero") {
  const Json result = run(R"({"op":"gdn_decode","use_qk_l2norm":false,
      "state_pool":[[[[2]]],[[[0]]]],"state_indices":[1,-1],)" +
                          scalar_tokens("[[[[3]]],[[[3]]]]", "[[[0.5]],[[0.5]]]") + "}");
  CHECK(data(result, "output") == Json({1.5, 0.0}));
  CHECK(data(result, "state_pool") == Json({2.0, 1.5}));
}

TEST_CASE("E5: what the dtypes of states store") {
  const std::string call = R"({"op":"gdn_prefill","q":[[[0]],[[0]],[[0]],[[0]]],
      "k":[[[1]],[[1]],[[1]],[[1]]],"v":[[[0]],[[0]],[[0]],[[0]]],
      "beta":[[0],[0],[0],[0]],"cu_seqlens":[0,1,2,3,4],"output_final_state":true,)";
  const auto stored = [&](const std::string& dtype, const std::string& states) {
    return data(run(call + R"("initial_state":{"dtype":"f32","shape":[4,1,1,1],"data":)" + states +
                    R"(},"output_state":{"dtype":")" + dtype +
                    R"(","shape":[4,1,1,1],"data":[0,0,0,0]}})"),
                "output_state");
  };
  CHECK(stored("f8_e4m3fn", R"([449,1e9,-1e9,"nan"])") == Json({448.0, 448.0, -448.0, "nan"}));
  CHECK(stored("f8_e5m2", R"([1e9,1.125,1.375,1e-9])") == Json({57344.0, 1.0, 1.5, 0.0}));
  CHECK(stored("bf16", "[0.524979,1.00390625,1.01171875,3.4e38]") ==
        Json({0.5234375, 1.0, 1.015625, "inf"}));
  CHECK(stored("f16", "[65519,65520,6e-8,2e-8]") ==
        Json({65504.0, "inf", 5.9604644775390625e-8, 0.0}));
}

TEST_CASE("E5: a float32 state of 65536 stays finite beside float16 inputs") {
  const Json result = run(R"({"op":"gdn_prefill","cu_seqlens":[0,1],"output_final_state":true,
      "q":{"dtype":"f16","shape":[1,1,1],"data":[0]},"k":{"dtype":"f16","shape":[1,1,1],"data":[1]},
      "v":{"dtype":"f16","shape":[1,1,1],"data":[1]},"g":[[0.5]],"beta":[[0]],
      "initial_state":[[[[65536]]]]})");
  CHECK(data(result, "output") == Json({0.0}));
  CHECK(data(result, "output_state") == Json({32768.0}));
}

TEST_CASE("E1: heads; E2: l2norm; E3: raw gates") {
  const Json heads = run(R"({"op":"gdn_prefill","cu_seqlens":[0,1],"scale":1,
      "q":[[[1],[2]]],"k":[[[1],[1]]],"v":[[[1],[2],[3],[4]]]})");
  CHECK(data(heads, "output") == Json({1.0, 2.0, 6.0, 8.0}));
  const Json raw = run(R"({"op":"gdn_decode","scale":1,
      "q":[[[[3]]]],"k":[[[[3]]]],"v":[[[[2]]]],"A_log":[0],"a":[[[0]]],"dt_bias":[0],"b":[[[0]]],
      "state_pool":[[[[4]]]],"state_indices":[0]})");
  // k = q = 3 / sqrt(9 + 1e-6), g = exp(-log 2) = beta = 1/2: S = 2, then 2 + (2 - 2k)k/2.
  const double k = 3 / std::sqrt(9 + 1e-6);
  CHECK(data(raw, "output")[0].get<double>() ==
        doctest::Approx(k * (2 + 0.5 * (2 - 2 * k) * k)).epsilon(1e-7));
}

TEST_CASE("E7: 130 tokens have two checkpoints of 64, at absolute positions") {
  Json test = Json::parse(R"({"op":"gdn_prefill","scale":1,"cu_seqlens":[0,130],
      "checkpoint_every_n_tokens":64,"checkpoint_cu_starts":[0],
      "state_checkpoints":[[[[0]]],[[[0]]],[[[0]]]],"output_final_state":true})");
  for (int n = 1; n <= 130; ++n) {  // k = 1, g = beta = 1: the state after a token is its v
    test["q"].push_back(Json::array({Json::array({1})}));
    test["k"].push_back(Json::array({Json::array({1})}));
    test["v"].push_back(Json::array({Json::array({n})}));
  }
  const Json fresh = quire_literal::eval(test);
  CHECK(data(fresh, "state_checkpoints") == Json({64.0, 128.0, 0.0}));
  CHECK(data(fresh, "output_state") == Json({130.0}));
  test["prefix_lens"] = {60};
  test["checkpoint_state_indices"] = {2};
  CHECK(quire_literal::eval(test)["argument"] == "checkpoint_cu_starts");
  test["checkpoint_state_indices"] = {2, -1};
  CHECK(data(quire_literal::eval(test), "state_checkpoints") == Json({0.0, 0.0, 4.0}));
}

TEST_CASE("E8: initial state, final state and checkpoints in one pool") {
  Json test = Json::parse(R"({"op":"gdn_prefill","scale":1,"cu_seqlens":[0,65],
      "initial_state":[[[[1]]],[[[2]]],[[[3]]]],"state_indices":[2],"output_state_indices":[0],
      "output_state":"initial_state","state_checkpoints":"output_state","output_final_state":true,
      "checkpoint_every_n_tokens":64,"checkpoint_cu_starts":[1]})");
  for (int n = 1; n <= 65; ++n) {
    test["q"].push_back(Json::array({Json::array({1})}));
    test["k"].push_back(Json::array({Json::array({1})}));
    test["v"].push_back(Json::array({Json::array({n})}));
  }
  const Json result = quire_literal::eval(test);
  CHECK(data(result, "output_state") == Json({65.0, 64.0, 3.0}));
  CHECK(data(result, "state_checkpoints") == Json({65.0, 64.0, 3.0}));
  CHECK_FALSE(result.contains("initial_state"));
}

TEST_CASE("E10-E12: the rows of the seed's 2500 tokens; decode over a page end") {
  const Json slots = run(R"({"op":"gdn_prefill_slots","cu_seqlens":[0,452,452],
      "page_indices":[7,3,12,5],"page_indptr":[0,3,4],"page_size":1024,"last_page_len":[452,64]})");
  CHECK(data(slots, "state_indices") == Json({3, 5}));
  CHECK(data(slots, "output_state_indices") == Json({12, -1}));
  CHECK(data(slots, "prefix_lens") == Json({2048, 64}));
  CHECK(data(slots, "checkpoint_cu_starts") == Json({2, 3}));
  const Json decode = run(R"({"op":"gdn_decode_slots","page_indices":[-1,4,6,8],
      "page_indptr":[0,3,3,4],"page_size":64,"last_page_len":[1,0,2]})");
  CHECK(data(decode, "state_indices") == Json({4, -1, 8}));
  CHECK(data(decode, "output_state_indices") == Json({6, -1, 8}));
}

TEST_CASE("E13: pages that a call may not touch as told") {
  const auto decode = [](const std::string& rest) {
    return rejected(R"({"op":"gdn_decode_slots",)" + rest + "}");
  };
  CHECK(decode(R"("page_indices":[1],"page_indptr":[0,1],"page_size":63,"last_page_len":[2])") ==
        "page_size");
  CHECK(decode(R"("page_indices":[1],"page_indptr":[0,1],"page_size":64,"last_page_len":[1])") ==
        "last_page_len");
  CHECK(decode(R"("page_indices":[-1],"page_indptr":[0,1],"page_size":64,"last_page_len":[2])") ==
        "page_indices");
  CHECK(decode(R"("page_indices":[1],"page_indptr":[0,2],"page_size":64,"last_page_len":[2])") ==
        "page_indptr");
  CHECK(decode(R"("page_indices":[5,5],"page_indptr":[0,1,2],"page_size":64,
      "last_page_len":[2,3])") == "page_indices");
}

TEST_CASE("F1: an index gives the page table of its lanes") {
  const Json result = run(R"({"op":"page_table","page_size":4,"scratch":[99],
      "index":{"pos":[[-1,4,5],[-1,-1,-1],[2,3,-1]],"table":[[-1],[-1],[-1]],
      "every":[{"m":4,"blocks":[[10,11],[12,13],[-1,15]]}]}})");
  CHECK(data(result, "cu_seqlens") == Json({0, 2, 2, 4}));
  CHECK(data(result, "page_indices") == Json({10, 11, 99, -1}));
  CHECK(data(result, "page_indptr") == Json({0, 2, 3, 4}));
  CHECK(data(result, "last_page_len") == Json({2, 4, 4}));
}

TEST_CASE("F3: check names what a caller broke") {
  const Json result = run(R"({"op":"check","slots":4,
      "index":{"pos":[[2],[4]],"table":[[0,1,1],[1,9,-1]],"row":[0,2]}})");
  std::vector<std::string> kinds;
  for (const Json& finding : result["findings"]) {
    kinds.push_back(finding["kind"].get<std::string>() + finding["lane"].dump() +
                    finding["row"].dump() + finding["column"].dump());
  }
  CHECK(kinds == std::vector<std::string>{
                     "slot_twice_in_rownull02", "shared_at_two_columnsnull10",
                     "slot_out_of_poolnull11", "write_to_shared002", "row_out_of_table12null",
                     "hole120", "hole121", "hole122", "past_context12null"});
}

TEST_CASE("An invalid argument is named") {
  CHECK(rejected(R"({"op":"nothing"})") == "op");
  CHECK(rejected(R"({"format":2,"op":"mask"})") == "format");
  CHECK(rejected(R"({"op":"mask","index":{}})") == "index");
  CHECK(rejected(R"({"op":"mask","index":{"whole":{"batch":1,"seq":1}},"width":1})") == "width");
  CHECK(rejected(R"({"op":"mask","index":{"pos":[[0],[1]],"table":[[0]]}})") == "table");
  CHECK(rejected(R"({"op":"mask","index":{"pos":[[0],[1,2]],"table":[[0]]}})") == "pos");
  CHECK(rejected(R"({"op":"mask","index":{"rows":{"context":4,"lens":[0,0]}}})") == "lens");
  CHECK(rejected(R"({"op":"mask","index":{"rows":{"context":4,"lens":[1]},
      "then":[{"every":2}]}})") == "every");
  CHECK(rejected(R"({"op":"mask","index":{"whole":{"batch":1,"seq":1},
      "then":[{"advance":true}]}})") == "advance");
  CHECK(rejected(R"({"op":"extend","index":{"rows":{"context":4,"lens":[1]}},"values":[[1]],
      "pool":{"dtype":"f32","shape":[2,3],"row_stride":2,"data":[1,2,3,4,5,6]}})") == "pool");
  CHECK(run(R"({"op":"nothing","id":"x"})")["id"] == "x");
}
