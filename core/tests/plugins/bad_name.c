/* A name that no option could take. */
#define FAKE_NAME "Bad Name\n"
#include "good_table.h"

FAKE_PLAIN_QUERY
