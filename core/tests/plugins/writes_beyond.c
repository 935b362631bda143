/* Writes a describe of its own, larger size. */
#define FAKE_NAME "writes-beyond"
#include "good_table.h"

static quire_status describe(quire_backend_info* info) {
  const quire_status status = fake_describe(info);
  char* bytes = (char*)info;
  bytes[sizeof *info + 8] = 7;
  return status;
}

FAKE_QUERY {
  (void)host;
  fake_table.describe = describe;
  return fake_answer(min_version, max_version, reason);
}
