/* Fails without a word: last_error is null. */
#define FAKE_NAME "silent-failure"
#include "good_table.h"

static quire_status device_count(int32_t* count) {
  *count = 0;
  return QUIRE_INTERNAL;
}
static const char* last_error(void) { return NULL; }

FAKE_QUERY {
  (void)host;
  fake_table.device_count = device_count;
  fake_table.last_error = last_error;
  return fake_answer(min_version, max_version, reason);
}
