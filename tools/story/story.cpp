// The command `quire story`: options, output, Ctrl-C.
#include "story.h"
#include "src/terminal.h"

#include "generate.h"
#include "report.h"
#include "src/interrupt.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <unistd.h>

namespace quire::story {

namespace {

void write(std::FILE* file, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file) != text.size() || std::fflush(file) != 0) {
    throw std::runtime_error("can't write the story to standard output");
  }
}

void note(std::string_view line) { tools::complain("{}\n", line); }

void write_report(const std::string& path, const std::string& report) {
  if (path.empty()) return write(stdout, report);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"),
                                                             &std::fclose);
  if (!file || std::fwrite(report.data(), 1, report.size(), file.get()) != report.size() ||
      std::fflush(file.get()) != 0) {
    throw std::runtime_error("can't write the report to " + path);
  }
}

void check_options(const StoryOptions& options) {
  if (!(std::isfinite(options.temperature) && options.temperature >= 0)) {
    throw std::runtime_error(
        fmt::format("--temperature is {}; allowed: 0 or a number above it", options.temperature));
  }
  if (options.tokens < 0)
    throw std::runtime_error(fmt::format("--tokens is {}; allowed: 0 or more", options.tokens));
  if (options.fault.empty()) return;
  fault_named(options.fault);
  if (!has_table(options.layout)) {
    throw std::runtime_error(fmt::format("--fault {}: layout {} has no table to plant it in",
                                         options.fault, options.layout));
  }
}

std::vector<std::string_view> layouts_of(const StoryOptions& options) {
  if (options.layout != "all") return {options.layout};
  std::vector<std::string_view> names;
  for (const std::string_view name : layout_names()) {
    if (options.fault.empty() || has_table(name)) names.push_back(name);
  }
  return names;
}

Tokens encode_prompt(const Tokenizer& tokenizer, const StoryOptions& options) {
  if (options.tokens == 0) return {begin_token};
  Tokens tokens = tokenizer.encode(options.prompt, options.tokens);
  if (static_cast<std::int64_t>(tokens.size()) > options.tokens) {
    throw std::runtime_error(fmt::format(
        "the prompt has {} tokens with the one that begins it; allowed: {}, see --tokens",
        tokens.size(), options.tokens));
  }
  return tokens;
}

class Command {
 public:
  explicit Command(const StoryOptions& options)
      : options_(options),
        backend_(options.backend.empty() ? default_backend() : backend(options.backend)),
        model_(Model::load(options.model)),
        tokenizer_(Tokenizer::load(options.tokenizer, model_.size().vocabulary)) {
    if (options.tokens > model_.size().context) {
      throw std::runtime_error(
          fmt::format("--tokens is {}; allowed: the model's context of {} at most", options.tokens,
                      model_.size().context));
    }
    generation_.model = &model_;
    generation_.tokenizer = &tokenizer_;
    generation_.on = on_host_tensors(backend_);
    generation_.chooser = Chooser(options.temperature, options.seed);
    generation_.prompt = encode_prompt(tokenizer_, options);
    generation_.tokens = options.tokens;
    generation_.fault = fault_named(options.fault);
    const auto prompt = static_cast<std::int64_t>(generation_.prompt.size());
    generation_.fault_from =
        prompt + std::clamp<std::int64_t>((options.tokens - prompt) / 4, 1, 20);
    generation_.interrupted = [] { return tools::interrupted(); };
    if (!options.json || !options.json->empty())
      generation_.print = [](std::string_view text) { write(stdout, text); };
    // On a terminal that shows the text as it grows a counter would stand in its midst.
    if (isatty(STDERR_FILENO) != 0 && (isatty(STDOUT_FILENO) == 0 || !generation_.print)) {
      generation_.progress = [this](std::int64_t tokens, double seconds) {
        if (tokens % 8 == 0)
          tools::complain("\r{} of {} tokens, {:.0f} tokens/s ", tokens, options_.tokens,
                     static_cast<double>(tokens) / seconds);
      };
    }
  }

  int run() {
    int exit_code = 0;
    std::vector<Outcome> outcomes;
    const std::vector<std::string_view> layouts = layouts_of(options_);
    tools::watch_interrupts();
    for (const std::string_view layout : layouts) {
      if (layouts.size() > 1) note(fmt::format("== {} on {}", layout, backend_.name()));
      outcomes.push_back(generate(layout, generation_));
      if (generation_.print) generation_.print("\n");
      if (generation_.progress) tools::complain("\r\033[K");
      exit_code = std::max(exit_code, judge(outcomes.back(), outcomes.front()));
      if (outcomes.back().interrupted) break;
    }
    if (options_.json)
      write_report(*options_.json, json_report(options_, backend_.name(), outcomes, exit_code));
    return exit_code;
  }

 private:
  int judge(const Outcome& outcome, const Outcome& first) const {
    note(summary(outcome));
    if (outcome.counts.findings > 0) {
      note(fmt::format("{}: {} findings of check, the first: {}", outcome.layout,
                       outcome.counts.findings, outcome.counts.first_finding));
    }
    if (outcome.interrupted) {
      note(fmt::format("{}: interrupted after {} tokens", outcome.layout, outcome.generated));
      return tools::interrupted_exit;
    }
    if (!outcome.mismatch.empty()) note(fmt::format("{}: {}", outcome.layout, outcome.mismatch));
    if (!options_.fault.empty()) {
      if (outcome.mismatch.empty())
        note(fmt::format("{}: the planted fault ({}) changed nothing", outcome.layout,
                         options_.fault));
      return outcome.mismatch.empty() ? 1 : 0;
    }
    const bool equal = outcome.text == first.text;
    if (!equal)
      note(fmt::format("{}: its text differs from that of {}", outcome.layout, first.layout));
    return equal && outcome.mismatch.empty() ? 0 : 1;
  }

  const StoryOptions& options_;
  const Backend& backend_;
  Model model_;
  Tokenizer tokenizer_;
  Generation generation_;
};

}  // namespace

}  // namespace quire::story

namespace quire::tools {

int run_story(const story::StoryOptions& options) {
  try {
    story::check_options(options);
    return story::Command(options).run();
  } catch (const std::bad_alloc&) {
    story::note("quire story: not enough memory");
  } catch (const std::exception& error) {
    story::note(std::string("quire story: ") + error.what());
  }
  return 2;
}

void add_story(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<story::StoryOptions>();
  const auto json = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "story",
      "Write a story with a language model whose caches lie in any layout, on any backend");
  command->add_option("--model", options->model, "Model in llama2.c's format")
      ->envname("QUIRE_MODEL")
      ->capture_default_str();
  command->add_option("--tokenizer", options->tokenizer, "Its tokenizer")
      ->envname("QUIRE_TOKENIZER")
      ->capture_default_str();
  command->add_option("--prompt", options->prompt, "How the story begins");
  command
      ->add_option("--tokens", options->tokens,
                   "Tokens that the model is evaluated on, the prompt's included")
      ->check([](const std::string& text) { return tools::whole_number_fault(text, 0, 1'000'000'000); })
      ->capture_default_str();
  command
      ->add_option("--temperature", options->temperature,
                   "0 takes the best token, higher ones draw")
      ->check(tools::empty_fault)
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of the draws")
      ->check([](const std::string& text) { return tools::whole_number_fault(text, 0, ~0ULL); })
      ->capture_default_str();
  std::string layouts;
  for (const std::string_view name : story::layout_names()) layouts += std::string(name) + ", ";
  command->add_option("--layout", options->layout, layouts + "or all")->capture_default_str();
  command->add_option("--backend", options->backend, "Backend by name; the default one otherwise")->check(tools::empty_fault);
  command->add_option("--fault", options->fault, "Plant a mistake: hole, swap, future, stale")->check(tools::empty_fault);
  CLI::Option* report =
      command
          ->add_option(
              "--json", *json,
              "Report as JSON, to the file or else to standard output in place of the text")
          ->expected(0, 1);
  command->callback([options, json, report, &exit_code] {
    if (report->count() > 0) options->json = *json == "-" ? std::string() : *json;
    exit_code = run_story(*options);
  });
}

}  // namespace quire::tools
