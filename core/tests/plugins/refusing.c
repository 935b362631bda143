/* Hands out no table, with a reason. */
#include "good_table.h"

FAKE_QUERY {
  (void)host;
  *reason = "the fake is out of order today";
  return max_version < min_version ? &fake_table : NULL;
}
