/* Has no device. */
#define FAKE_NAME "no-device"
#define FAKE_RANK 90
#define FAKE_DEVICES 0
#include "good_table.h"

FAKE_PLAIN_QUERY
