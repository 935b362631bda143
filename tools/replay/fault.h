// Mistakes that engines make, planted on request.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace quire::replay {

enum class Fault {
  none,
  stale,     ///< a request without a prefix starts from what a reused page still holds
  share,     ///< a request goes on in the slots of the shared page that its prefix ends with
  boundary,  ///< the state stored at a page's end is that of the token before
  reject,    ///< a draft's last token is kept, accepted or not
  window,    ///< the attention window is one position wider
  evict,     ///< a shared page is evicted though a request reads it
};

const std::vector<std::string_view>& fault_names();
/// Raises invalid_argument (`--fault`) for an unknown name; "" is none.
Fault fault_named(std::string_view name);
std::string_view name(Fault fault);

}  // namespace quire::replay
