/* Prints what its probe might print on every descriptor that it can guess, and is good otherwise. */
#define FAKE_NAME "noisy"
#define FAKE_RANK 1
#include "good_table.h"

#include <stdio.h>
#include <unistd.h>

FAKE_QUERY {
  static const char garbage[] = "fault hung\nreason garbage\nname garbage\nend\n\xff\x01\n";
  int descriptor = 0;
  (void)host;
  printf("%s", garbage);
  fflush(stdout);
  fputs(garbage, stderr);
  for (descriptor = 3; descriptor < 10; ++descriptor) {
    if (write(descriptor, garbage, sizeof garbage - 1) < 0) continue;
  }
  return fake_answer(min_version, max_version, reason);
}
