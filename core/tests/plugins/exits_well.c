/* Ends the process when it is asked for its devices, as if all were well. */
#define FAKE_NAME "exits-well"
#include "good_table.h"

#include <stdlib.h>

static quire_status device_count(int32_t* count) {
  *count = 0;
  exit(0);
}

FAKE_QUERY {
  (void)host;
  fake_table.device_count = device_count;
  return fake_answer(min_version, max_version, reason);
}
