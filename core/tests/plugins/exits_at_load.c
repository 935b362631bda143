/* Ends the process while it is loaded. */
#define FAKE_NAME "exits-at-load"
#include "good_table.h"

#include <stdlib.h>

__attribute__((constructor)) static void at_load(void) { exit(3); }

FAKE_PLAIN_QUERY
