// Faults of page tables: the slots ops, paged prefill and decode, page_table.
#include <algorithm>

#include "random_cases_bad.h"

namespace quire_tests {
namespace {

Json draw_pages_case(Random& random) {
  return random.chance(50) ? draw_slots(random) : draw_paged(random);
}

// The sequences of a page table: how many tokens are new, and where its pages stand.
struct Sequence {
  std::int64_t first = 0;
  std::int64_t pages = 0;
  std::int64_t fresh = 0;
  std::int64_t prefix = 0;
};

std::vector<Sequence> sequences_of(const Json& subject) {
  const Ints indptr = read_integers(subject["page_indptr"]);
  const Ints last = read_integers(subject["last_page_len"]);
  const std::int64_t size = subject["page_size"];
  std::vector<Sequence> sequences;
  for (std::size_t place = 0; place + 1 < indptr.size(); ++place) {
    Sequence sequence;
    sequence.first = indptr[place];
    sequence.pages = indptr[place + 1] - indptr[place];
    if (subject.contains("cu_seqlens")) {
      const Ints bounds = read_integers(subject["cu_seqlens"]);
      sequence.fresh = bounds[place + 1] - bounds[place];
    } else {
      sequence.fresh = sequence.pages > 0 ? 1 : 0;
    }
    const std::int64_t total = sequence.pages > 0 ? (sequence.pages - 1) * size + last[place] : 0;
    sequence.prefix = total - sequence.fresh;
    sequences.push_back(sequence);
  }
  return sequences;
}

// A sequence with new tokens, or -1.
std::int64_t busy_sequence(Random& random, const std::vector<Sequence>& sequences) {
  for (const std::int64_t place : shuffled(random, static_cast<std::int64_t>(sequences.size()))) {
    if (sequences[static_cast<std::size_t>(place)].fresh > 0) return place;
  }
  return -1;
}

std::string set_page(Json& subject, std::int64_t place, std::int64_t id) {
  Ints pages = read_integers(subject["page_indices"]);
  pages[static_cast<std::size_t>(place)] = id;
  subject["page_indices"] = pages;
  return "page_indices";
}

std::string set_last(Json& subject, std::int64_t place, std::int64_t length) {
  Ints lengths = read_integers(subject["last_page_len"]);
  lengths[static_cast<std::size_t>(place)] = length;
  subject["last_page_len"] = lengths;
  return "last_page_len";
}

}  // namespace

const std::vector<Fault>& page_faults() {
  static const std::vector<Fault> faults = {
      {"a page of no chunks", draw_pages_case,
       [](Random& random, Json& subject) -> std::string {
         subject["page_size"] = random.one_of(Ints{0, -64, 1, 63, 96});
         return "page_size";
       }},
      {"page bounds that start past 0", draw_pages_case,
       [](Random&, Json& subject) -> std::string {
         Ints bounds = read_integers(subject["page_indptr"]);
         if (bounds.back() < 1) return "";
         bounds[0] = 1;
         subject["page_indptr"] = bounds;
         return "page_indptr";
       }},
      {"page bounds that fall", draw_pages_case,
       [](Random&, Json& subject) -> std::string {
         Ints bounds = read_integers(subject["page_indptr"]);
         if (bounds.size() < 3 || bounds[1] < 1) return "";
         bounds[2] = bounds[1] - 1;
         subject["page_indptr"] = bounds;
         return "page_indptr";
       }},
      {"page bounds past the pages", draw_pages_case,
       [](Random&, Json& subject) -> std::string {
         Ints bounds = read_integers(subject["page_indptr"]);
         if (bounds.size() < 2) return "";
         bounds.back() =
             static_cast<std::int64_t>(read_integers(subject["page_indices"]).size()) + 1;
         subject["page_indptr"] = bounds;
         return "page_indptr";
       }},
      {"page bounds of other sequences", draw_pages_case,
       [](Random&, Json& subject) -> std::string {
         // gdn_decode_slots has nothing else to count its sequences by.
         if (subject["op"] == "gdn_decode_slots") return "";
         Ints bounds = read_integers(subject["page_indptr"]);
         bounds.push_back(bounds.back());
         subject["page_indptr"] = bounds;
         return "page_indptr";
       }},
      {"lengths of other sequences", draw_pages_case,
       [](Random&, Json& subject) -> std::string {
         Ints lengths = read_integers(subject["last_page_len"]);
         lengths.push_back(1);
         subject["last_page_len"] = lengths;
         return "last_page_len";
       }},
      {"an empty last page", draw_pages_case,
       [](Random& random, Json& subject) -> std::string {
         const std::int64_t place = busy_sequence(random, sequences_of(subject));
         return place < 0 ? "" : set_last(subject, place, random.between(-1, 0));
       }},
      {"a last page too full", draw_pages_case,
       [](Random& random, Json& subject) -> std::string {
         const std::int64_t place = busy_sequence(random, sequences_of(subject));
         const std::int64_t size = subject["page_size"];
         return place < 0 ? "" : set_last(subject, place, size + 1);
       }},
      {"a page outside the pool where it is stored", draw_pages_case,
       [](Random& random, Json& subject) -> std::string {
         const auto sequences = sequences_of(subject);
         const std::int64_t place = busy_sequence(random, sequences);
         if (place < 0) return "";
         const Sequence& sequence = sequences[static_cast<std::size_t>(place)];
         std::int64_t id = -1;
         if (subject.contains("state_pool") && random.chance(50)) {
           id = subject["state_pool"]["shape"][0];
         }
         if (subject.contains("num_pages") && random.chance(50)) {
           id = subject["num_pages"];
         }
         return set_page(subject, sequence.first + sequence.pages - 1, id);
       }},
      {"a page outside the pool where it is read", draw_pages_case,
       [](Random& random, Json& subject) -> std::string {
         const auto sequences = sequences_of(subject);
         const std::int64_t place = busy_sequence(random, sequences);
         if (place < 0) return "";
         const Sequence& sequence = sequences[static_cast<std::size_t>(place)];
         const std::int64_t size = subject["page_size"];
         if (sequence.prefix < 1) return "";
         return set_page(subject, sequence.first + (sequence.prefix - 1) / size, -1);
       }},
      {"a page that two sequences store to", draw_pages_case,
       [](Random&, Json& subject) -> std::string {
         const auto sequences = sequences_of(subject);
         const Ints pages = read_integers(subject["page_indices"]);
         std::int64_t last = -1;
         for (const Sequence& sequence : sequences) {
           if (sequence.fresh == 0) continue;
           const std::int64_t place = sequence.first + sequence.pages - 1;
           if (last >= 0) {
             return set_page(subject, place, pages[static_cast<std::size_t>(last)]);
           }
           last = place;
         }
         return "";
       }},
      {"a page twice in what a sequence stores", draw_slots,
       [](Random&, Json& subject) -> std::string {
         const std::int64_t size = subject["page_size"];
         for (const Sequence& sequence : sequences_of(subject)) {
           const std::int64_t stored = sequence.pages - sequence.prefix / size;
           if (sequence.fresh == 0 || stored < 2) continue;
           const Ints pages = read_integers(subject["page_indices"]);
           const std::int64_t end = sequence.first + sequence.pages;
           return set_page(subject, end - 1, pages[static_cast<std::size_t>(end - 2)]);
         }
         return "";
       }},
      {"too few pages for the new tokens", draw_pages_case,
       [](Random&, Json& subject) -> std::string {
         if (!subject.contains("cu_seqlens")) return "";
         const auto sequences = sequences_of(subject);
         Ints bounds = read_integers(subject["page_indptr"]);
         const std::int64_t place = static_cast<std::int64_t>(sequences.size()) - 1;
         if (place < 0 || sequences.back().pages < 2) return "";
         if (sequences.back().prefix > 0 || sequences.back().fresh == 0) return "";
         bounds.back() -= 1;
         // Still inside a page, so that only the list is at fault.
         subject["page_indptr"] = bounds;
         return "page_indptr";
       }},
      {"a decoded token that is the first", draw_pages_case,
       [](Random&, Json& subject) -> std::string {
         if (subject.contains("cu_seqlens")) return "";
         const auto sequences = sequences_of(subject);
         for (std::size_t place = 0; place < sequences.size(); ++place) {
           if (sequences[place].pages != 1) continue;
           return set_last(subject, static_cast<std::int64_t>(place), 1);
         }
         return "";
       }},
      {"a negative count of pages", draw_slots,
       [](Random&, Json& subject) -> std::string {
         subject["num_pages"] = -1;
         return "num_pages";
       }},
      {"bounds that end early", draw_paged,
       [](Random&, Json& subject) -> std::string {
         if (!subject.contains("cu_seqlens")) return "";
         Ints bounds = read_integers(subject["cu_seqlens"]);
         const std::int64_t last = bounds.back();
         if (last == 0) return "";
         for (std::int64_t& bound : bounds) bound = std::min(bound, last - 1);
         subject["cu_seqlens"] = bounds;
         return "cu_seqlens";
       }},
      {"pages of a whole index", draw_page_table,
       [](Random&, Json& subject) -> std::string {
         subject["index"] = {{"whole", {{"batch", 2}, {"seq", 3}}}};
         subject.erase("scratch");
         return "index";
       }},
      {"pages of packed sequences", draw_page_table,
       [](Random&, Json& subject) -> std::string {
         subject["index"] = {{"packed", {{"seq", 3}, {"lens", {{1, 2}}}}}};
         subject.erase("scratch");
         return "index";
       }},
      {"pages of a selection or a draft", draw_page_table,
       [](Random& random, Json& subject) -> std::string {
         Json builder = {{"select", {{{0}}}}};
         if (random.chance(50)) {
           builder = {{"draft", {{"slots", {{5}}}, {"sees", {{{true}}}}}}};
         }
         subject["index"] = {{"pos", {{1}}},
                             {"table", {{0, 1}}},
                             {"every", Json::array({{{"m", 2}, {"blocks", Json::array({{4}})}}})},
                             {"then", Json::array({builder})}};
         subject["page_size"] = 2;
         subject.erase("scratch");
         return "index";
       }},
      {"a sequence in two lanes", draw_page_table,
       [](Random&, Json& subject) -> std::string {
         subject["index"] = {{"pos", {{1}, {0}}},
                             {"table", {{0, 1}}},
                             {"row", {0, 0}},
                             {"every", Json::array({{{"m", 2}, {"blocks", Json::array({{4}})}}})}};
         subject["page_size"] = 2;
         subject.erase("scratch");
         return "index";
       }},
      {"positions with a gap", draw_page_table,
       [](Random& random, Json& subject) -> std::string {
         subject["index"] = {{"pos", {random.chance(50) ? Ints{0, 2} : Ints{1, 0}}},
                             {"table", {{0, 1, 2}}},
                             {"every", Json::array({{{"m", 2}, {"blocks", {{4, 5}}}}})}};
         subject["page_size"] = 2;
         subject.erase("scratch");
         return "index";
       }},
      {"a position past the blocks", draw_page_table,
       [](Random&, Json& subject) -> std::string {
         subject["index"] = {{"pos", {{3, 4}}},
                             {"table", {{0, 1, 2, 3, 4, 5}}},
                             {"every", Json::array({{{"m", 2}, {"blocks", {{4, 5}}}}})}};
         subject["page_size"] = 2;
         subject.erase("scratch");
         return "index";
       }},
      {"a row outside the table", draw_page_table,
       [](Random& random, Json& subject) -> std::string {
         subject["index"] = {{"pos", {{0, 1}}},
                             {"table", {{0, 1, 2}}},
                             {"row", {random.one_of(Ints{1, -2, 9})}},
                             {"every", Json::array({{{"m", 2}, {"blocks", {{4, 5}}}}})}};
         subject["page_size"] = 2;
         subject.erase("scratch");
         return "index";
       }},
      {"no blocks of this size", draw_page_table,
       [](Random& random, Json& subject) -> std::string {
         subject["page_size"] = random.one_of(Ints{0, 1, -2, 7});
         return "page_size";
       }},
      {"scratch pages of other lanes", draw_page_table,
       [](Random&, Json& subject) -> std::string {
         if (!subject.contains("scratch")) return "";
         Ints scratch = read_integers(subject["scratch"]);
         scratch.push_back(77);
         subject["scratch"] = scratch;
         return "scratch";
       }},
  };
  return faults;
}

}  // namespace quire_tests
