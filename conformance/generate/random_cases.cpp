// The families of random cases, by name.
#include "random_cases.h"

#include <map>
#include <stdexcept>

#include "random_cases_parts.h"

namespace quire_tests {
namespace {

using Draw = Json (*)(Random&);

const std::map<std::string, Draw, std::less<>>& draws() {
  static const std::map<std::string, Draw, std::less<>> table = {
      {"index", draw_index_case},      {"extend", draw_extend},
      {"attend", draw_attend},         {"gdn_prefill", draw_gdn_prefill},
      {"gdn_decode", draw_gdn_decode}, {"slots", draw_slots},
      {"paged", draw_paged},           {"verify", draw_verify},
      {"page_table", draw_page_table}, {"check", draw_check},
      {"programs", draw_program},      {"steps", draw_steps},
  };
  return table;
}

}  // namespace

const std::vector<std::string>& families() {
  static const std::vector<std::string> names = {"index",      "extend", "attend", "gdn_prefill",
                                                 "gdn_decode", "slots",  "paged",  "verify",
                                                 "page_table", "check",  "bad",    "programs", "steps"};
  return names;
}

nlohmann::json random_case(std::string_view family, std::uint64_t number) {
  Random random(family, number);
  Json result;
  if (family == "bad") {
    result = draw_bad(random, number);
  } else {
    const auto found = draws().find(family);
    if (found == draws().end()) {
      throw std::invalid_argument("unknown family of random cases: " + std::string(family));
    }
    result = finish(random, found->second(random));
  }
  // The versions may be left out, and some cases leave them out.
  if (!result.contains("format") && number % 3 == 0) {
    result["format"] = 1;
    if (family != "programs" && family != "steps") result["semantics"] = 1;
  }
  return result;
}

}  // namespace quire_tests
