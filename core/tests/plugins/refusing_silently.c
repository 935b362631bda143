/* Hands out no table and gives no reason. */
#include "good_table.h"

FAKE_QUERY {
  (void)host; (void)reason;
  return max_version < min_version ? &fake_table : NULL;
}
