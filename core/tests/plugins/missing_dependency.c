/* Needs a library that is nowhere. */
#define FAKE_NAME "missing-dependency"
#include "good_table.h"

int fake_gone(void);

FAKE_QUERY {
  (void)host;
  return fake_gone() == 7 ? fake_answer(min_version, max_version, reason) : NULL;
}
