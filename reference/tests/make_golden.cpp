// Prints golden cases: random cases with the literal implementation's result as `expect`.
// Usage: make_golden FAMILY COUNT [FIRST]
//
// Where a transcendental function decides the last bit of a rounding, the two implementations may differ by one step; such a case has no
// exact golden result and is passed over. Any other difference is an error here.
#include "agreement.h"
#include "literal.h"
#include "random_cases.h"

#include "case/evaluate.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iostream>

namespace {

// Outputs with the object form's keys in the library's order compare as JSON values.
bool same(nlohmann::json expected, nlohmann::json got) {
  const auto bare = [](nlohmann::json& result) {
    for (const char* key : {"intact", "id"}) result.erase(key);
    if (result.value("status", "") == "error") result.erase("message");
    if (result.contains("findings")) {
      for (auto& finding : result["findings"]) finding.erase("message");
      std::sort(result["findings"].begin(), result["findings"].end());
    }
  };
  if (expected.is_array()) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (!same(expected[i], got[i])) return false;
    }
    return expected.size() == got.size();
  }
  bare(expected);
  bare(got);
  return expected == got;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: make_golden FAMILY COUNT [FIRST]\n";
    return 2;
  }
  const std::string family = argv[1];
  const int count = std::atoi(argv[2]);
  int made = 0;
  for (std::uint64_t number = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0; made < count; ++number) {
    nlohmann::json test_case = quire_tests::random_case(family, number);
    const nlohmann::json expected = quire_literal::eval(test_case);
    const nlohmann::json got = nlohmann::json::parse(quire::conformance::evaluate(test_case, {}).text);
    if (const std::string text = quire_tests::disagreement(test_case, expected, got); !text.empty()) {
      std::cerr << family << " " << number << ": " << text << "\n";
      return 1;
    }
    if (!same(expected, got) || test_case.dump().size() > 6000) continue;
    test_case["format"] = 1;
    test_case["semantics"] = 1;
    test_case["id"] = family + " " + std::to_string(number);
    test_case["expect"] = expected;
    const auto drop = [](nlohmann::json& result) {
      result.erase("id");
      result.erase("message");
    };
    if (expected.is_array()) {
      for (auto& step : test_case["expect"]) drop(step);
    } else {
      drop(test_case["expect"]);
    }
    std::cout << test_case.dump() << "\n";
    ++made;
  }
  return 0;
}
