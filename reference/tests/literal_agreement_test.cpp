// The library against the literal implementation: thousands of random cases of every op and pair of features.
#include "agreement.h"
#include "literal.h"
#include "random_cases.h"

#include "case/evaluate.h"

#include <doctest/doctest.h>

#include <cstdlib>

namespace {

// QUIRE_TEST_CASES: cases per family, for a longer run than the usual one.
std::uint64_t cases_per_family() {
  const char* text = std::getenv("QUIRE_TEST_CASES");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 1500;
}

}  // namespace

TEST_CASE("every family of random cases agrees with the literal implementation") {
  for (const std::string& family : quire_tests::families()) {
    CAPTURE(family);
    int shown = 0;
    std::uint64_t compared = 0;
    for (std::uint64_t number = 0; number < cases_per_family() && shown < 3; ++number) {
      const nlohmann::json test_case = quire_tests::random_case(family, number);
      const nlohmann::json expected = quire_literal::eval(test_case);
      const nlohmann::json got = nlohmann::json::parse(quire::conformance::evaluate(test_case, {}).text);
      const std::string difference = quire_tests::disagreement(test_case, expected, got);
      ++compared;
      if (difference.empty()) continue;
      ++shown;
      FAIL_CHECK(family << " " << number << ": " << difference << "\n" << test_case.dump());
    }
    CHECK(shown == 0);
    CHECK(compared >= 1);
  }
}
