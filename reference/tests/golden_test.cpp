// The golden cases: the library and the literal implementation both give what each expects.
#include "agreement.h"
#include "literal.h"

#include "case/evaluate.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

namespace {

std::vector<std::filesystem::path> golden_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(QUIRE_GOLDEN_FOLDER)) {
    if (entry.path().extension() == ".jsonl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

template <typename Body>
void for_each_golden_case(const Body& body) {
  for (const std::filesystem::path& file : golden_files()) {
    std::ifstream stream(file);
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      if (!line.empty()) body(file.filename().string() + ":" + std::to_string(number), nlohmann::json::parse(line));
    }
  }
}

}  // namespace

TEST_CASE("every golden case gives what it expects") {
  int count = 0;
  for_each_golden_case([&](const std::string& place, const nlohmann::json& test_case) {
    CAPTURE(place);
    const bool shows_defaults = test_case.value("id", "").rfind("format: ", 0) == 0;
    CHECK((shows_defaults || test_case.contains("format")));
    CHECK((shows_defaults || test_case.contains("semantics")));
    CHECK((test_case.contains("expect") || test_case.contains("steps")));
    const quire::conformance::Evaluated evaluated = quire::conformance::evaluate(test_case, {{}, QUIRE_GOLDEN_FOLDER, {}});
    CHECK_MESSAGE(evaluated.ok, evaluated.text.substr(0, 600));
    ++count;
  });
  CHECK(count > 300);
}

TEST_CASE("the literal implementation agrees on every golden case") {
  for_each_golden_case([&](const std::string& place, const nlohmann::json& test_case) {
    if (test_case.dump().find("\"file\"") != std::string::npos) return;      // it reads no side files
    if (test_case.value("id", "").find("2^66 bytes") != std::string::npos) return;  // and makes no tensors, so none is too large
    nlohmann::json asked = test_case;
    for (const char* key : {"expect", "tolerance"}) {
      asked.erase(key);
      if (asked.contains("steps")) {
        for (auto& step : asked["steps"]) step.erase(key);
      }
    }
    const nlohmann::json expected = quire_literal::eval(asked);
    const nlohmann::json got = nlohmann::json::parse(quire::conformance::evaluate(test_case, {{}, QUIRE_GOLDEN_FOLDER, {}}).text);
    nlohmann::json bare = got;
    for (nlohmann::json* result : {&bare}) {
      if (!result->is_array()) result->erase("verdict");
      else for (nlohmann::json& step : *result) step.erase("verdict");
    }
    CHECK_MESSAGE(quire_tests::disagreement(test_case, expected, bare) == "", place << ": " << quire_tests::disagreement(test_case, expected, bare));
  });
}

TEST_CASE("a golden case with one number changed is seen") {
  int changed = 0;
  for_each_golden_case([&](const std::string& place, nlohmann::json test_case) {
    if (!test_case.contains("expect") || !test_case["expect"].is_object() || test_case.contains("tolerance")) return;
    for (auto& output : test_case["expect"]) {
      if (!output.is_object() || !output.contains("data") || output["data"].empty() || !output["data"][0].is_number()) continue;
      const double number = output["data"][0].get<double>();
      output["data"][0] = number == 0 ? 1 : 0;
      CHECK_MESSAGE(!quire::conformance::evaluate(test_case, {{}, QUIRE_GOLDEN_FOLDER, {}}).ok, place);
      ++changed;
      return;
    }
  });
  CHECK(changed > 50);
}
