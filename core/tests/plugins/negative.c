/* A plugin that is never the default. */
#define FAKE_NAME "negative"
#define FAKE_RANK -1
#include "good_table.h"

FAKE_PLAIN_QUERY
