/* Its driver is missing. */
#define FAKE_NAME "no-driver"
#define FAKE_RANK 90
#include "good_table.h"

static quire_status device_count(int32_t* count) {
  *count = 0;
  return fake_fails(QUIRE_UNAVAILABLE, "no fake driver is installed (error 35)");
}

FAKE_QUERY {
  (void)host;
  fake_table.device_count = device_count;
  return fake_answer(min_version, max_version, reason);
}
