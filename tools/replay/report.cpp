// The summary as text and as JSON.
#include "report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace quire::replay {

namespace {

using Json = nlohmann::ordered_json;

double share(std::int64_t part, std::int64_t whole) { return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole); }

// 13,732,944
std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// The most that this process ever held, in bytes; 0 where the machine doesn't tell.
std::int64_t resident_peak() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return 1024 * std::stoll(line.substr(6));
  }
  return 0;
}

std::string gibibytes(std::int64_t bytes) { return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30)); }

struct Phase {
  const char* name;
  double seconds;
};

std::vector<Phase> phases(const Engine& engine, const Report& report) {
  const PhaseSeconds s = engine.seconds();
  std::vector<Phase> all = {{"schedule", s.schedule}, {"index", s.index}, {"activations", s.activations}, {"attention", s.attention},
                            {"gated_delta", s.recurrence}, {"guard", s.guard}, {"verify", s.verify}};
  double rest = report.seconds;
  for (const Phase& phase : all) rest -= phase.seconds;
  all.push_back({"other", rest});
  return all;
}

std::string_view state_of(const Engine& engine, const Report& report) {
  return engine.is_broken() ? "broken off" : report.interrupted ? "interrupted" : "done";
}

}  // namespace

std::string summary(const Options& options, const Engine& engine, const Report& report) {
  const Counts& c = engine.counts();
  const PageCounts& p = engine.page_counts();
  const Verified& v = engine.verified();
  std::string text;
  const auto line = [&](std::string_view label, std::string_view what) { text += fmt::format("{:<13}{}\n", label, what); };
  line("requests", fmt::format("{} {} on {}, window {}, {} gated-delta layers", grouped(c.requests), state_of(engine, report), report.backend, options.window, options.layers));
  line("tokens", fmt::format("{} prompt, {} output; {} from the cache, {} computed", grouped(c.prompt_tokens), grouped(c.output_tokens), grouped(c.cached_tokens),
                             grouped(c.computed_tokens)));
  line("hit rate", fmt::format("{:.2f}% of prompt tokens", 100 * share(c.cached_tokens, c.prompt_tokens)));
  line("pages", fmt::format("{} of {} tokens; allocated {}, shared {}, cached {}, evicted {}, reused {}; {} held at most", grouped(options.pages), engine.page_size(),
                            grouped(p.allocated), grouped(p.shared), grouped(p.cached), grouped(p.evicted), grouped(p.reused), grouped(p.most_held)));
  line("steps", fmt::format("{}: {} prefill, {} decode, {} draft", grouped(c.steps), grouped(c.prefills), grouped(c.decodes), grouped(c.drafts)));
  line("batches", fmt::format("{:.1f} lanes on average, {} at most; {:.1f} tokens on average, {} at most", share(c.lanes, c.steps), c.most_lanes, share(c.step_tokens, c.steps),
                              grouped(c.most_tokens)));
  line("drafts", fmt::format("{} tokens, {} accepted ({:.1f}%), {} on side branches", grouped(c.drafted_tokens), grouped(c.accepted_tokens),
                             100 * share(c.accepted_tokens, c.drafted_tokens), grouped(c.branches)));
  line("verified", fmt::format("{} requests, {} tokens in each of {} layers, {} states; largest error {:.3f} of what is allowed beside the final rounding", grouped(v.requests), grouped(v.tokens),
                               options.layers + 1, grouped(v.states), v.largest_error));
  line("shared pages", fmt::format("{} watched, {} comparisons", grouped(engine.guard().watched()), grouped(engine.guard().compared())));
  if (options.check) line("check", fmt::format("{} indices, {} findings", grouped(c.checks), grouped(c.findings)));
  if (options.fault != Fault::none) line("fault", fmt::format("{}, planted in {} places", name(options.fault), grouped(engine.planted())));
  line("digest", fmt::format("{:016x}", engine.digest()));
  line("mismatches", grouped(static_cast<std::int64_t>(v.mismatches.size())));
  for (std::size_t n = 0; n < std::min(v.mismatches.size(), most_listed); ++n) text += fmt::format("  {}\n", v.mismatches[n].message);
  if (v.mismatches.size() > most_listed) text += fmt::format("  and {} more\n", grouped(static_cast<std::int64_t>(v.mismatches.size() - most_listed)));
  return text;
}

std::string timing(const Engine& engine, const Report& report) {
  std::string text = fmt::format("time         {:.1f} s on {} threads:", report.seconds, report.threads);
  for (const Phase& phase : phases(engine, report)) text += fmt::format(" {} {:.1f}{}", phase.name, phase.seconds, std::string_view(phase.name) == "other" ? "" : ",");
  text += fmt::format("\nspeed        {} tokens/s\n", grouped(static_cast<std::int64_t>(static_cast<double>(engine.counts().computed_tokens) / std::max(report.seconds, 1e-9))));
  text += fmt::format("memory       {} for pools, tables and kept outputs at most; the process held {} at most\n", gibibytes(engine.most_bytes()), gibibytes(resident_peak()));
  return text;
}

std::string json_report(const Options& options, const Engine& engine, const Report& report) {
  const Counts& c = engine.counts();
  const PageCounts& p = engine.page_counts();
  const Verified& v = engine.verified();
  Json mismatches = Json::array();
  for (std::size_t n = 0; n < std::min(v.mismatches.size(), most_listed); ++n) {
    const Mismatch& m = v.mismatches[n];
    const auto number = [](const std::optional<std::int64_t>& value) { return value ? Json(*value) : Json(nullptr); };
    mismatches.push_back({{"step", m.step}, {"request", number(m.request)}, {"layer", m.layer.empty() ? Json(nullptr) : Json(m.layer)}, {"page", number(m.page)},
                          {"token", number(m.position)}, {"what", m.what}, {"message", m.message}});
  }
  Json seconds;
  for (const Phase& phase : phases(engine, report)) seconds[phase.name] = phase.seconds;
  const Json all = {
      {"state", state_of(engine, report)},
      {"backend", report.backend},
      {"fault", options.fault == Fault::none ? Json(nullptr) : Json{{"name", name(options.fault)}, {"planted", engine.planted()}}},
      {"requests", c.requests},
      {"tokens", {{"prompt", c.prompt_tokens}, {"output", c.output_tokens}, {"cached", c.cached_tokens}, {"computed", c.computed_tokens}}},
      {"hit_rate", share(c.cached_tokens, c.prompt_tokens)},
      {"pages", {{"budget", options.pages}, {"page_size", engine.page_size()}, {"allocated", p.allocated}, {"shared", p.shared}, {"cached", p.cached},
                 {"evicted", p.evicted}, {"reused", p.reused}, {"most_held", p.most_held}}},
      {"steps", {{"all", c.steps}, {"prefill", c.prefills}, {"decode", c.decodes}, {"draft", c.drafts}, {"mean_lanes", share(c.lanes, c.steps)}, {"most_lanes", c.most_lanes},
                 {"mean_tokens", share(c.step_tokens, c.steps)}, {"most_tokens", c.most_tokens}}},
      {"drafts", {{"tokens", c.drafted_tokens}, {"accepted", c.accepted_tokens}, {"side_branches", c.branches}}},
      {"verified", {{"requests", v.requests}, {"tokens", v.tokens}, {"states", v.states}, {"largest_error", v.largest_error}}},
      {"shared_pages", {{"watched", engine.guard().watched()}, {"compared", engine.guard().compared()}}},
      {"check", options.check ? Json{{"indices", c.checks}, {"findings", c.findings}} : Json(nullptr)},
      {"digest", fmt::format("{:016x}", engine.digest())},
      {"mismatches", v.mismatches.size()},
      {"first_mismatches", std::move(mismatches)},
      {"timing", {{"seconds", report.seconds}, {"threads", report.threads}, {"phases", std::move(seconds)},
                  {"tokens_per_second", static_cast<double>(c.computed_tokens) / std::max(report.seconds, 1e-9)}}},
      {"memory", {{"engine_bytes", engine.most_bytes()}, {"process_bytes", resident_peak()}}},
  };
  return all.dump(2) + "\n";
}

}  // namespace quire::replay
