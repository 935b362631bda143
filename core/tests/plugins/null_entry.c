/* A table with two holes. */
#define FAKE_NAME "null-entry"
#include "good_table.h"

FAKE_QUERY {
  fake_table.supports = NULL;
  fake_table.contract = NULL;
  (void)host;
  return fake_answer(min_version, max_version, reason);
}
