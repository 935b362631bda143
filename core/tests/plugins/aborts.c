/* Aborts when it is asked for its table. */
#define FAKE_NAME "aborts"
#include "good_table.h"

#include <stdio.h>
#include <stdlib.h>

FAKE_QUERY {
  (void)host;
  fputs("first line\nthe fake can not go on\n", stderr);
  if (max_version >= min_version) abort();
  return fake_answer(min_version, max_version, reason);
}
