/* Takes the name of a built-in backend. */
#define FAKE_NAME "reference"
#define FAKE_RANK 100
#include "good_table.h"

FAKE_PLAIN_QUERY
