// Programs of an engine on a key and value cache, for the family of programs.
#pragma once

#include "random_cases_parts.h"

namespace quire_tests {

/// A history of calls of `extend`, or of `attend`, on pools that the calls share.
Json draw_engine(Random& random, bool attends);

}  // namespace quire_tests
