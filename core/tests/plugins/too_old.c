/* Speaks the ABI before the oldest that is asked for. While the oldest is 0 there is none, and tests ask for a range that begins later. */
#define FAKE_NAME "too-old"
#define FAKE_RANK -1
#define FAKE_ABI 0u
#include "good_table.h"

FAKE_PLAIN_QUERY
