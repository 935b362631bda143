// The report of `quire story`.
#include "report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace quire::story {

std::string summary(const Outcome& outcome) {
  const Counts& counts = outcome.counts;
  std::string line = fmt::format("{}: {} tokens, {:.0f} tokens/s, {} calls", outcome.layout,
                                 outcome.generated, outcome.tokens_per_second(), counts.calls);
  if (counts.slots_used > 0)
    line += fmt::format(", {} slots in {} pages", counts.slots_used, counts.pages_used);
  if (counts.slots_shared > 0)
    line += fmt::format(", {} slots and {} pages shared", counts.slots_shared, counts.pages_shared);
  if (counts.forks > 0) line += fmt::format(", {} fork", counts.forks);
  if (counts.lanes > 1) line += fmt::format(", {} lanes", counts.lanes);
  if (outcome.stories.size() > 1) line += fmt::format(", {} stories", outcome.stories.size());
  if (counts.drafts_accepted + counts.drafts_rejected > 0) {
    line += fmt::format(", {} drafts accepted and {} rejected", counts.drafts_accepted,
                        counts.drafts_rejected);
  }
  if (counts.columns_selected > 0)
    line += fmt::format(", {} columns selected", counts.columns_selected);
  if (outcome.smallest_gap) line += fmt::format(", smallest gap {:.6g}", *outcome.smallest_gap);
  return line;
}

std::string json_report(const StoryOptions& options, std::string_view backend,
                        const std::vector<Outcome>& outcomes, int exit_code) {
  using nlohmann::ordered_json;
  ordered_json report;
  report["model"] = options.model;
  report["tokenizer"] = options.tokenizer;
  report["backend"] = backend;
  report["prompt"] = options.prompt;
  report["tokens"] = options.tokens;
  report["temperature"] = options.temperature;
  report["seed"] = options.seed;
  report["fault"] = options.fault.empty() ? ordered_json(nullptr) : ordered_json(options.fault);
  report["layouts"] = ordered_json::array();
  for (const Outcome& outcome : outcomes) {
    const Counts& counts = outcome.counts;
    ordered_json layout;
    layout["layout"] = outcome.layout;
    layout["text"] = outcome.text;
    layout["stories"] = outcome.stories.size();
    layout["tokens"] = outcome.generated;
    layout["seconds"] = outcome.seconds;
    layout["tokens_per_second"] = outcome.tokens_per_second();
    layout["calls"] = counts.calls;
    layout["slots_used"] = counts.slots_used;
    layout["slots_shared"] = counts.slots_shared;
    layout["pages_used"] = counts.pages_used;
    layout["pages_shared"] = counts.pages_shared;
    layout["forks"] = counts.forks;
    layout["lanes"] = counts.lanes;
    layout["drafts_accepted"] = counts.drafts_accepted;
    layout["drafts_rejected"] = counts.drafts_rejected;
    layout["columns_selected"] = counts.columns_selected;
    layout["smallest_gap"] =
        outcome.smallest_gap ? ordered_json(*outcome.smallest_gap) : ordered_json(nullptr);
    layout["findings"] = counts.findings;
    layout["first_finding"] =
        counts.findings > 0 ? ordered_json(counts.first_finding) : ordered_json(nullptr);
    layout["agrees"] = outcome.mismatch.empty();
    layout["mismatch"] =
        outcome.mismatch.empty() ? ordered_json(nullptr) : ordered_json(outcome.mismatch);
    layout["mismatch_at"] =
        outcome.mismatch_at ? ordered_json(*outcome.mismatch_at) : ordered_json(nullptr);
    layout["interrupted"] = outcome.interrupted;
    report["layouts"].push_back(std::move(layout));
  }
  report["exit_code"] = exit_code;
  // A model may choose bytes that are no UTF-8 text.
  return report.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace quire::story
