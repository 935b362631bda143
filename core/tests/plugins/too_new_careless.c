/* Speaks a newer ABI and hands out its table all the same, of another size. */
#define FAKE_NAME "too-new-careless"
#define FAKE_ABI (QUIRE_ABI_VERSION + 1u)
#include "good_table.h"

FAKE_QUERY {
  (void)host; (void)min_version; (void)max_version; (void)reason;
  fake_table.struct_size = 16;
  return &fake_table;
}
