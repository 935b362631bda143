/* No name at all. */
#define FAKE_NAME NULL
#include "good_table.h"

FAKE_PLAIN_QUERY
