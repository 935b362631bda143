/* A plugin as it should be, of higher rank than the others. */
#define FAKE_NAME "higher"
#define FAKE_RANK 50
#include "good_table.h"

FAKE_PLAIN_QUERY
