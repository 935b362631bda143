// The backends linked into the library quire: the reference.
#include <quire/registry.h>

#include "backend.h"

namespace quire::detail {

std::vector<quire_backend_query_fn> built_in_backends() { return {reference::query}; }

}  // namespace quire::detail
