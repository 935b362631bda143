// Faults: ways to break one thing of a valid case so that the laws reject it.
#pragma once

#include <string>
#include <vector>

#include "random_cases_parts.h"

namespace quire_tests {

/// A fault of a family's cases. `apply` returns the argument that the error must name, or nothing
/// where this case cannot have the fault; another case is then drawn.
struct Fault {
  const char* reason;
  Json (*base)(Random&);
  std::string (*apply)(Random&, Json&);
};

const std::vector<Fault>& form_faults();
const std::vector<Fault>& index_faults();
const std::vector<Fault>& attention_faults();
const std::vector<Fault>& rule_faults();
const std::vector<Fault>& page_faults();

/// The integers of a rank-1 field in either form.
Ints read_integers(const Json& field);
/// Changes one axis of a tensor in the object form, and its data with it.
void resize_axis(Json& target, std::size_t axis, std::int64_t change);
/// Removes or adds an axis of length 1 at the end.
void drop_axis(Json& target);
/// The same shape in another dtype.
void retype(Json& target, const std::string& dtype);
/// Whether a field is there in the object form.
bool is_tensor(const Json& subject, const char* name);

}  // namespace quire_tests
