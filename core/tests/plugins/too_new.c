/* Speaks a newer ABI and says so. */
#define FAKE_NAME "too-new"
#define FAKE_ABI (QUIRE_ABI_VERSION + 1u)
#include "good_table.h"

FAKE_PLAIN_QUERY
