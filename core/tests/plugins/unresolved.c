/* Uses two functions that nothing defines. */
#define FAKE_NAME "unresolved"
#include "good_table.h"

int fake_nowhere_one(void);
int fake_nowhere_two(void);

FAKE_QUERY {
  (void)host;
  return fake_nowhere_one() == fake_nowhere_two() ? fake_answer(min_version, max_version, reason) : NULL;
}
