// Throws out of the exported function.
#define FAKE_NAME "throws-in-query"
#include "good_table.h"

#include <stdexcept>

FAKE_QUERY {
  (void)host;
  if (max_version >= min_version) throw std::runtime_error("thrown in the query");
  return fake_answer(min_version, max_version, reason);
}
