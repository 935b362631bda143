/* Never answers, and neither does the process that it starts. FAKE_CHILD_FILE: where that one's number is written. */
#define FAKE_NAME "hangs"
#include "good_table.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_ever(void) {
  for (;;) pause();
}

FAKE_QUERY {
  const char* file = getenv("FAKE_CHILD_FILE");
  (void)host;
  signal(SIGTERM, SIG_IGN);
  if (file != NULL) {
    const pid_t child = fork();
    FILE* to = child > 0 ? fopen(file, "w") : NULL;
    if (to != NULL) {
      fprintf(to, "%d\n", (int)child);
      fclose(to);
    }
  }
  if (max_version >= min_version) wait_for_ever();
  return fake_answer(min_version, max_version, reason);
}
