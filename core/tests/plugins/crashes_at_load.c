/* Crashes while it is loaded. */
#define FAKE_NAME "crashes-at-load"
#include "good_table.h"

#include <signal.h>

__attribute__((constructor)) static void at_load(void) { raise(SIGSEGV); }

FAKE_PLAIN_QUERY
