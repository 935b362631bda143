// Throws out of an entry of its table, and nothing that std::exception is the base of.
#define FAKE_NAME "throws-in-describe"
#include "good_table.h"

static quire_status describe(quire_backend_info*) { throw 7; }

FAKE_QUERY {
  (void)host;
  fake_table.describe = describe;
  return fake_answer(min_version, max_version, reason);
}
