/* Takes the name of good. */
#include "good_table.h"

FAKE_PLAIN_QUERY
