// Faults of the gated delta rule on rows: prefill, decode and verify.
#include <algorithm>

#include "random_cases_bad.h"

namespace quire_tests {
namespace {

// Cases of the rule with tokens, in any op but verify.
Json draw_rule(Random& random) {
  if (random.chance(50)) return draw_gdn_decode(random);
  while (true) {
    Json subject = draw_gdn_prefill(random);
    if (count_of(subject["q"]["shape"]) > 0) return subject;
  }
}

Json draw_prefill(Random& random) {
  while (true) {
    Json subject = draw_gdn_prefill(random);
    if (count_of(subject["q"]["shape"]) > 0) return subject;
  }
}

// A prefill without checkpoints.
Json draw_plain_prefill(Random& random) {
  while (true) {
    Json subject = draw_prefill(random);
    if (!subject.contains("checkpoint_every_n_tokens")) return subject;
  }
}

Json draw_checkpoints(Random& random) {
  while (true) {
    Json subject = draw_prefill(random);
    if (subject.contains("checkpoint_every_n_tokens")) return subject;
  }
}

std::string wrong_length(Json& subject, const char* name) {
  if (!subject.contains(name)) return "";
  Ints values = read_integers(subject[name]);
  values.push_back(values.empty() ? 0 : values.back());
  subject[name] = values;
  return name;
}

std::string not_integers(Json& subject, const char* name) {
  if (!subject.contains(name)) return "";
  const Ints values = read_integers(subject[name]);
  subject[name] = tensor("f32", {static_cast<std::int64_t>(values.size())}, values);
  return name;
}

// One token more in each lane, consistently: only the op, or its index, is against it.
std::string more_tokens(Json& subject) {
  for (const char* name : {"q", "k", "v", "g", "beta", "a", "b"}) {
    if (subject.contains(name)) resize_axis(subject[name], 1, 1);
  }
  return "q";
}

std::string set_places(Json& subject, std::int64_t start) {
  // A sequence that has a checkpoint, and all its places moved outside (E7).
  const Ints cu_seqlens = read_integers(subject["cu_seqlens"]);
  const std::int64_t interval = subject["checkpoint_every_n_tokens"];
  Ints starts = read_integers(subject["checkpoint_cu_starts"]);
  for (std::size_t sequence = 0; sequence + 1 < cu_seqlens.size(); ++sequence) {
    const std::int64_t prefix =
        subject.contains("prefix_lens") ? read_integers(subject["prefix_lens"])[sequence] : 0;
    const std::int64_t total = prefix + cu_seqlens[sequence + 1] - cu_seqlens[sequence];
    if (total / interval == prefix / interval) continue;
    starts[sequence] = start;
    subject["checkpoint_cu_starts"] = starts;
    return "checkpoint_cu_starts";
  }
  return "";
}

}  // namespace

const std::vector<Fault>& rule_faults() {
  static const std::vector<Fault> faults = {
      {"queries of another rank", draw_rule,
       [](Random&, Json& subject) -> std::string {
         drop_axis(subject["q"]);
         return "q";
       }},
      {"queries that are integers", draw_rule,
       [](Random&, Json& subject) -> std::string {
         retype(subject["q"], "i8");
         return "q";
       }},
      {"queries that are fp8", draw_rule,
       [](Random&, Json& subject) -> std::string {
         retype(subject["q"], "f8_e4m3fn");
         return "q";
       }},
      {"keys of another width", draw_rule,
       [](Random&, Json& subject) -> std::string {
         resize_axis(subject["k"], subject["k"]["shape"].size() - 1, 1);
         return "k";
       }},
      {"keys of other tokens", draw_rule,
       [](Random&, Json& subject) -> std::string {
         resize_axis(subject["k"], 0, 1);
         return "k";
       }},
      {"values of another dtype", draw_rule,
       [](Random&, Json& subject) -> std::string {
         retype(subject["v"], subject["v"]["dtype"] == "f32" ? "f16" : "f32");
         return "v";
       }},
      {"values of other tokens", draw_rule,
       [](Random&, Json& subject) -> std::string {
         resize_axis(subject["v"], 0, 1);
         return "v";
       }},
      {"key heads of neither grouping", draw_rule,
       [](Random&, Json& subject) -> std::string {
         resize_axis(subject["k"], subject["k"]["shape"].size() - 2, 5);
         return "k";
       }},
      {"gates of other heads", draw_rule,
       [](Random& random, Json& subject) -> std::string {
         const char* name = random.chance(50) ? "g" : "beta";
         if (!subject.contains(name)) return "";
         resize_axis(subject[name], subject[name]["shape"].size() - 1, 1);
         return name;
       }},
      {"gates that are not float32", draw_rule,
       [](Random& random, Json& subject) -> std::string {
         const char* name = random.chance(50) ? "g" : "beta";
         if (!subject.contains(name)) return "";
         retype(subject[name], random.chance(50) ? "bf16" : "f64");
         return name;
       }},
      {"two tokens of a sequence", draw_gdn_decode,
       [](Random&, Json& subject) -> std::string { return more_tokens(subject); }},
      {"a raw gate that is missing", draw_gdn_decode,
       [](Random& random, Json& subject) -> std::string {
         if (!subject.contains("A_log")) return "";
         const std::string name =
             random.one_of(std::vector<std::string>{"A_log", "a", "dt_bias", "b"});
         subject.erase(name);
         return name;
       }},
      {"raw gates beside given ones", draw_gdn_decode,
       [](Random&, Json& subject) -> std::string {
         if (!subject.contains("A_log")) return "";
         subject["beta"] = subject["a"];
         retype(subject["beta"], "f32");
         return "A_log";
       }},
      {"a raw gate of other heads", draw_gdn_decode,
       [](Random& random, Json& subject) -> std::string {
         if (!subject.contains("A_log")) return "";
         const char* name = random.chance(50) ? "A_log" : "dt_bias";
         resize_axis(subject[name], 0, 1);
         return name;
       }},
      {"rows of other sequences", draw_gdn_decode,
       [](Random& random, Json& subject) -> std::string {
         return wrong_length(subject, random.chance(50) ? "state_indices" : "output_state_indices");
       }},
      {"rows that are not integers", draw_gdn_decode,
       [](Random&, Json& subject) -> std::string {
         return not_integers(subject, "state_indices");
       }},
      {"a pool of another width", draw_gdn_decode,
       [](Random& random, Json& subject) -> std::string {
         resize_axis(subject["state_pool"], random.chance(50) ? 2 : 3, 1);
         return "state_pool";
       }},
      {"a pool of a dtype of no state", draw_gdn_decode,
       [](Random& random, Json& subject) -> std::string {
         retype(subject["state_pool"], random.chance(50) ? "f64" : "i32");
         return "state_pool";
       }},
      {"bounds that start past 0", draw_prefill,
       [](Random&, Json& subject) -> std::string {
         Ints bounds = read_integers(subject["cu_seqlens"]);
         bounds[0] = 1;
         subject["cu_seqlens"] = bounds;
         return "cu_seqlens";
       }},
      {"bounds that fall", draw_prefill,
       [](Random&, Json& subject) -> std::string {
         Ints bounds = read_integers(subject["cu_seqlens"]);
         if (bounds.size() < 3) return "";
         bounds[1] = bounds.back() + 1;
         subject["cu_seqlens"] = bounds;
         return "cu_seqlens";
       }},
      {"bounds that end early", draw_prefill,
       [](Random&, Json& subject) -> std::string {
         Ints bounds = read_integers(subject["cu_seqlens"]);
         const std::int64_t last = bounds.back();
         for (std::int64_t& bound : bounds) bound = std::min(bound, last - 1);
         subject["cu_seqlens"] = bounds;
         return "cu_seqlens";
       }},
      {"bounds that are not integers", draw_prefill,
       [](Random&, Json& subject) -> std::string { return not_integers(subject, "cu_seqlens"); }},
      {"states of a dtype of no state", draw_prefill,
       [](Random&, Json& subject) -> std::string {
         if (!is_tensor(subject, "initial_state")) return "";
         retype(subject["initial_state"], "f64");
         return "initial_state";
       }},
      {"states of another width", draw_prefill,
       [](Random& random, Json& subject) -> std::string {
         const char* name = random.chance(50) ? "initial_state" : "output_state";
         if (!is_tensor(subject, name)) return "";
         resize_axis(subject[name], random.between(0, 1) == 0 ? 2 : 3, 1);
         return name;
       }},
      {"states of other sequences", draw_prefill,
       [](Random& random, Json& subject) -> std::string {
         const char* name = random.chance(50) ? "initial_state" : "output_state";
         if (!is_tensor(subject, name) || subject.contains("state_indices")) return "";
         resize_axis(subject[name], 0, 1);
         return name;
       }},
      {"rows of other sequences", draw_prefill,
       [](Random& random, Json& subject) -> std::string {
         return wrong_length(subject, random.chance(50) ? "state_indices" : "output_state_indices");
       }},
      {"rows to store to without rows to read", draw_prefill,
       [](Random&, Json& subject) -> std::string {
         if (!subject.contains("output_state_indices")) return "";
         if (!is_tensor(subject, "output_state")) return "";
         subject.erase("state_indices");
         subject.erase("initial_state");
         // As many rows as sequences, as a call without rows has.
         const std::int64_t spare =
             subject["output_state"]["shape"][0].get<std::int64_t>() + 1 -
             static_cast<std::int64_t>(read_integers(subject["cu_seqlens"]).size());
         resize_axis(subject["output_state"], 0, -spare);
         for (const char* name :
              {"checkpoint_every_n_tokens", "prefix_lens", "checkpoint_cu_starts",
               "state_checkpoints", "checkpoint_state_indices"})
           subject.erase(name);
         return "output_state_indices";
       }},
      {"rows to store to but nothing stored", draw_prefill,
       [](Random&, Json& subject) -> std::string {
         if (!subject.contains("output_state_indices")) return "";
         subject["output_final_state"] = false;
         return "output_state_indices";
       }},
      {"an interval of no chunks", draw_checkpoints,
       [](Random& random, Json& subject) -> std::string {
         subject["checkpoint_every_n_tokens"] = random.one_of(Ints{1, 63, 65, 0, -64, 96});
         return "checkpoint_every_n_tokens";
       }},
      {"no buffer for checkpoints", draw_checkpoints,
       [](Random&, Json& subject) -> std::string {
         subject.erase("state_checkpoints");
         return "state_checkpoints";
       }},
      {"no places for checkpoints", draw_checkpoints,
       [](Random&, Json& subject) -> std::string {
         subject.erase("checkpoint_cu_starts");
         return "checkpoint_cu_starts";
       }},
      {"prefixes without an interval", draw_plain_prefill,
       [](Random&, Json& subject) -> std::string {
         const auto count = read_integers(subject["cu_seqlens"]).size() - 1;
         subject["prefix_lens"] = Ints(count, 3);
         return "prefix_lens";
       }},
      {"checkpoint rows without an interval", draw_plain_prefill,
       [](Random&, Json& subject) -> std::string {
         subject["checkpoint_state_indices"] = {0};
         return "checkpoint_state_indices";
       }},
      {"places of other sequences", draw_checkpoints,
       [](Random&, Json& subject) -> std::string {
         const auto count = read_integers(subject["cu_seqlens"]).size() - 1;
         subject["checkpoint_cu_starts"] = Ints(count + 2, 0);
         return "checkpoint_cu_starts";
       }},
      {"a place past the rows", draw_checkpoints,
       [](Random&, Json& subject) -> std::string {
         const std::int64_t places =
             subject.contains("checkpoint_state_indices")
                 ? static_cast<std::int64_t>(
                       read_integers(subject["checkpoint_state_indices"]).size())
                 : subject["state_checkpoints"]["shape"][0].get<std::int64_t>();
         return set_places(subject, places);
       }},
      {"a place before the rows", draw_checkpoints,
       [](Random&, Json& subject) -> std::string { return set_places(subject, -1); }},
      {"a negative prefix", draw_checkpoints,
       [](Random&, Json& subject) -> std::string {
         if (!subject.contains("prefix_lens")) return "";
         Ints prefixes = read_integers(subject["prefix_lens"]);
         prefixes[0] = -1;
         subject["prefix_lens"] = prefixes;
         return "prefix_lens";
       }},
      {"prefixes of other sequences", draw_checkpoints,
       [](Random&, Json& subject) -> std::string { return wrong_length(subject, "prefix_lens"); }},
      {"checkpoints of another width", draw_checkpoints,
       [](Random&, Json& subject) -> std::string {
         if (!is_tensor(subject, "state_checkpoints")) return "";
         resize_axis(subject["state_checkpoints"], 2, 1);
         return "state_checkpoints";
       }},
      {"a call that verifies no draft", draw_verify,
       [](Random&, Json& subject) -> std::string {
         if (subject["index"].contains("pos")) return "";
         subject["index"].erase("then");
         return "index";
       }},
      {"two parents of one position", draw_verify,
       [](Random&, Json& subject) -> std::string {
         subject["index"] = {
             {"pos", {{4, 4, 5}}},
             {"table", {{0, 1, 2, 3, 4}}},
             {"then", Json::array({{{"draft",
                                     {{"slots", {{7, 8, 9}}},
                                      {"sees", Json::array({Json(3, Json(3, Json(true)))})}}}}})}};
         const Ints shape = subject["q"]["shape"];
         if (shape[0] != 1 || shape[1] != 3) return "";
         if (read_integers(subject["state_indices"])[0] < 0) return "";
         return "index";
       }},
      {"queries of other tokens", draw_verify,
       [](Random&, Json& subject) -> std::string { return more_tokens(subject); }},
      {"rows of other lanes", draw_verify,
       [](Random&,
          Json& subject) -> std::string { return wrong_length(subject, "state_indices"); }},
      {"slots of other tokens", draw_verify,
       [](Random&, Json& subject) -> std::
                                      string {
                                        subject["state_slots"][0].push_back(-1);
                                        if (subject["state_slots"].size() > 1) return "";
                                        return "state_slots";
                                      }},
      {"two stores to one slot", draw_verify,
       [](Random&,
          Json& subject) -> std::
                             string {
                               const std::int64_t rows = subject["state_pool"]["shape"][0];
                               Json& slots = subject["state_slots"];
                               Ints targets;
                               for (const Json& lane : slots) {
                                 for (const std::int64_t slot : lane.get<Ints>()) {
                                   if (slot >= 0 && slot < rows) targets.push_back(slot);
                                 }
                               }
                               // Only a lane without padding is known to store everywhere.
                               if (!subject["index"].contains("pos") || targets.empty()) return "";
                               if (!subject["index"]["pos"].is_array()) return "";
                               if (subject["index"].value("then", Json::array()).size() != 1)
                                 return "";
                               const Json& pos = subject["index"]["pos"][0];
                               if (pos.size() < 2 || pos[0] < 0 || pos[1] < 0) return "";
                               if (subject["index"].contains("row")) return "";
                               const std::int64_t read = read_integers(subject["state_indices"])[0];
                               if (read < 0 || read >= rows) return "";
                               slots[0][0] = read;
                               slots[0][1] = read;
                               return "state_slots";
                             }},
      {"a store to another lane's row", draw_verify,
       [](Random&, Json& subject) -> std::
                                      string {
                                        const std::int64_t rows = subject["state_pool"]["shape"][0];
                                        const Ints reads = read_integers(subject["state_indices"]);
                                        if (reads.size() < 2 || subject["index"].contains("row"))
                                          return "";
                                        if (!subject["index"].contains("pos")) return "";
                                        if (!subject["index"]["pos"].is_array()) return "";
                                        if (subject["index"].value("then", Json::array()).size() !=
                                            1)
                                          return "";
                                        for (const std::int64_t read : reads) {
                                          if (read < 0 || read >= rows) return "";
                                        }
                                        if (reads[0] == reads[1]) return "";
                                        for (const Json& t : subject["index"]["pos"]) {
                                          if (t[0] < 0) return "";
                                        }
                                        subject["state_slots"][0][0] = reads[1];
                                        return "state_slots";
                                      }},
  };
  return faults;
}

}  // namespace quire_tests
