// The literal implementation: every numbered law a second time, slow and obvious, sharing no code
// with the library, so that the reference can be checked against something it did not write.
#ifndef QUIRE_REFERENCE_TESTS_LITERAL_H
#define QUIRE_REFERENCE_TESTS_LITERAL_H

#include <nlohmann/json.hpp>

namespace quire_literal {

// Runs one case (or a program of steps, which gives a JSON array of results) and returns its result
// object. Never throws on a bad case: the result is then the error object. There is no "intact".
nlohmann::json eval(const nlohmann::json& test_case);

}  // namespace quire_literal

#endif  // QUIRE_REFERENCE_TESTS_LITERAL_H
