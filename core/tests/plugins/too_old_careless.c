/* As too_old, and hands out its table whatever it is asked for. */
#define FAKE_NAME "too-old-careless"
#define FAKE_RANK -1
#define FAKE_ABI 0u
#include "good_table.h"

FAKE_QUERY {
  (void)host; (void)min_version; (void)max_version; (void)reason;
  return &fake_table;
}
