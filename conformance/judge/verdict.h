// What the judge says of one call: where it first went wrong, and how far errors were from what is allowed.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace quire::conformance {

/// Counts of |error| / allowed, over all elements that have a tolerance.
struct ErrorDistribution {
  /// Up to 0.01, 0.1, 0.25, 0.5, 0.75, 1, and above.
  std::array<std::int64_t, 7> counts{};
  double largest = 0;

  void add(double ratio);
  void add(const ErrorDistribution& other);
  std::int64_t total() const;
};

/// The first wrong element of a call, or what else was wrong with it.
struct Failure {
  std::string op;
  std::string law;      ///< "C5": the most particular law that the element hangs on
  std::vector<std::string> also;  ///< the further ones in force (the gated delta rule's features)
  std::string tensor;   ///< the field, empty where no tensor is at fault
  std::string place;    ///< "lane 0, token 2, head 1, element 3"
  std::string what;     ///< "must be equal bit for bit"
  std::string expected, got, tolerance;
  std::string message;  ///< one line with all of it

  /// "E5, with E6, E1".
  std::string laws() const;
  /// The message of a wrong element, from the other fields.
  std::string message_of_element() const;
};

struct CallVerdict {
  enum class Status { passed, failed, unsupported } status = Status::passed;
  std::string op;      ///< by its ABI name
  std::string reason;  ///< why unsupported
  Failure failure;
  ErrorDistribution errors;
  ErrorDistribution shares;          ///< the same without the final rounding: error_model.h's `share`; where calls are classified
  std::vector<std::string> regimes;  ///< classes of the call, where asked for
};

}  // namespace quire::conformance
