/* Computes the laws of another version. */
#define FAKE_NAME "other-laws"
#define FAKE_SEMANTICS (QUIRE_SEMANTICS_VERSION + 1u)
#include "good_table.h"

FAKE_PLAIN_QUERY
