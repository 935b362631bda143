/* What the C translation unit offers to the C++ test. */
#ifndef QUIRE_BACKEND_HEADER_TEST_H
#define QUIRE_BACKEND_HEADER_TEST_H

#include <quire/backend.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Fills `sizes` with the size of each struct as C sees it, in the order of the header; answers how many there are. */
int quire_header_sizes(size_t* sizes, int capacity);
/* A small backend written in C: every op unsupported, with reasons. */
const quire_backend_table* quire_header_query(const quire_host* host, uint32_t min_version, uint32_t max_version, const char** reason);
/* Runs each op once through a table, from C. Null when all went well, else what did not. */
const char* quire_header_run(const quire_backend_table* table);

#ifdef __cplusplus
}
#endif

#endif
