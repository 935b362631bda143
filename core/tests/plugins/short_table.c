/* A table that ends before its last two entries. */
#define FAKE_NAME "short-table"
#include "good_table.h"

FAKE_QUERY {
  fake_table.struct_size = offsetof(quire_backend_table, launch);
  (void)host;
  return fake_answer(min_version, max_version, reason);
}
