/* A plugin as it should be. */
#include "good_table.h"

FAKE_PLAIN_QUERY
