/* Names a dtype that there is not. */
#define FAKE_NAME "unknown-dtype"
#define FAKE_DTYPES ((uint64_t)1 << 40)
#include "good_table.h"

FAKE_PLAIN_QUERY
