// quire replay: a serving trace on an engine in miniature.
#include "commands.h"
#include "interrupt.h"
#include "replay/replay.h"
#include "terminal.h"

#include <quire/error.h>
#include <quire/registry.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>
#include <unistd.h>

namespace quire::tools {

namespace {

struct ReplayCommand {
  replay::Options options;
  std::string fault, json, max_memory;
  std::int64_t threads = 0;
  bool wants_json = false;
};

std::string duration(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// A bar of tokens, with the time that is left at the speed so far.
class Progress {
 public:
  explicit Progress(std::int64_t tokens) : tokens_(tokens) {}
  void operator()(const replay::Counts& counts, double seconds) {
    if (seconds < next_) return;
    next_ = seconds + 0.2;
    constexpr int width = 30;
    const double part = static_cast<double>(counts.computed_tokens + counts.cached_tokens) / static_cast<double>(tokens_);
    const int done = static_cast<int>(part * width);
    complain("\r[{:#<{}}{:.<{}}] {:5.1f}% {} requests, {} left \033[K", "", done, "", width - done, 100 * part, counts.requests, duration(seconds * (1 - part) / std::max(part, 1e-9)));
    shown_ = true;
  }
  void clear() const {
    if (shown_) complain("\r\033[K");
  }

 private:
  std::int64_t tokens_;
  double next_ = 0;
  bool shown_ = false;
};

// A run may be long: what it can't write at its end is found out at its begin, and leaves no file behind.
void require_writable(std::string_view option, const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const auto fail = [&](std::string_view what) { reject(option, fmt::format("\"{}\", {}", printable(path.string()), what), "a file that can be written"); };
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) fail("which is no regular file");
  std::FILE* file = std::fopen(path.c_str(), "ab");
  if (file == nullptr) fail("which can't be written");
  std::fclose(file);
  if (!std::filesystem::exists(status)) std::filesystem::remove(path, error);
}

// No file is written over another that this run reads or writes.
void require_distinct(const std::vector<std::pair<std::string_view, std::string>>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::error_code error;
      const auto place = [&](const std::string& file) { return std::filesystem::weakly_canonical(file, error); };
      if (place(files[i].second) == place(files[j].second)) {
        reject(files[i].first, fmt::format("\"{}\", which {} names too", printable(files[i].second), files[j].first), "another file");
      }
    }
  }
}

// Where --save writes: through a link, to what it stands for.
void check_files(replay::Options& options, const std::string& json) {
  std::vector<std::pair<std::string_view, std::string>> files = {{"trace", options.trace}};
  if (!json.empty() && json != "-") {
    require_writable("--json", json);
    files.emplace_back("--json", json);
  }
  if (!options.save.empty()) {
    std::error_code error;
    if (std::filesystem::is_symlink(options.save, error)) options.save = std::filesystem::weakly_canonical(options.save, error).string();
    if (std::filesystem::path(options.save).extension() != ".json") reject("--save", "\"" + printable(options.save) + "\"", "a name that ends in .json; large tensors go beside it into .npz");
    const std::string side = replay::side_file(options.save).string();
    require_writable("--save", options.save);
    require_writable("--save", side);
    files.emplace_back("--save", options.save);
    files.emplace_back("--save's tensors", side);
  }
  require_distinct(files);
}

void write_file(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool ok = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
  if (file != nullptr) ok = std::fclose(file) == 0 && ok;
  if (!ok) reject("--json", "\"" + path + "\", which can't be written", "a file that can");
}

// Whether standard output took it; `main` says so where it did not.
bool print(const std::string& text) { return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0; }

// Bytes, or with K, M, G, T; nothing for what is no number of bytes.
std::optional<std::int64_t> bytes_of(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const std::string_view unit(stop, static_cast<std::size_t>(end - stop));
  const std::size_t power = unit.empty() ? 0 : std::string_view("KMGT").find(unit) + 1;
  if (error != std::errc() || number < 1 || unit.size() > 1 || (power == 0 && !unit.empty())) return std::nullopt;
  if (number > (std::numeric_limits<std::int64_t>::max() >> (10 * power))) return std::nullopt;
  return number << (10 * power);
}

std::string bytes_fault(const std::string& text) {
  return bytes_of(text) ? std::string() : "\"" + printable(text) + "\"; allowed: a number of bytes from 1 on, also with K, M, G or T";
}

int run_replay(ReplayCommand command) {
  if (command.threads > 0) setenv("QUIRE_THREADS", std::to_string(command.threads).c_str(), 1);
  replay::Options& options = command.options;
  options.fault = replay::fault_named(command.fault);
  if (!command.max_memory.empty()) options.max_memory = bytes_of(command.max_memory).value_or(0);
  const Backend& backend = options.backend.empty() ? default_backend() : quire::backend(options.backend);
  const replay::Trace trace = replay::read_trace(options.trace, options.start, options.requests, options.scale);
  settle(options, trace);
  check_files(options, command.json);
  Progress progress(trace.tokens());
  replay::Watch watch;
  watch.interrupted = interrupted;
  if (isatty(STDERR_FILENO) == 1) watch.progress = std::ref(progress);
  watch_interrupts();
  const replay::Replayed replayed = replay::replay(options, trace, backend, watch);
  progress.clear();
  const bool json_alone = command.wants_json && (command.json.empty() || command.json == "-");
  const std::string json = command.wants_json ? json_report(options, *replayed.engine, replayed.report) : std::string();
  if (!print(json_alone ? json : summary(options, *replayed.engine, replayed.report))) return 2;
  if (command.wants_json && !json_alone) write_file(command.json, json);
  complain("{}", timing(*replayed.engine, replayed.report));
  if (options.fault != replay::Fault::none && replayed.engine->planted() == 0) {
    complain("quire replay: --fault {} found no place in this run: nothing was planted\n", command.fault);
  }
  if (replayed.report.interrupted) complain("quire replay: interrupted after {} requests\n", replayed.engine->counts().requests);
  if (!options.save.empty() && (replayed.engine->has_saved() || !replayed.report.interrupted)) {
    replayed.engine->save();
    complain("quire replay: wrote {} and {}\n", options.save, replay::side_file(options.save).string());
  }
  return exit_status(replayed);
}

auto whole(unsigned long long least, unsigned long long most) {
  return [=](const std::string& text) { return whole_number_fault(text, least, most); };
}

std::string share_fault(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return !text.empty() && (text[0] == '.' || (text[0] >= '0' && text[0] <= '9')) && *end == '\0' && number >= 0 && number <= 1 ? std::string() : "\"" + printable(text) + "\"; allowed: a number from 0 to 1";
}

std::string scale_fault(const std::string& text) {
  const std::string fault = share_fault(text);
  return fault.empty() && std::strtod(text.c_str(), nullptr) > 0 ? fault : "\"" + printable(text) + "\"; allowed: a number above 0, 1 at most";
}

}  // namespace

void add_replay(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("replay", "Run a serving trace on an engine in miniature: paged caches, shared prefixes, drafts, eviction, one index");
  const auto given = std::make_shared<ReplayCommand>();
  replay::Options& options = given->options;
  constexpr unsigned long long many = 1ULL << 31;
  command->add_option("trace", options.trace, "Trace in Mooncake's format: JSON lines with timestamp, input_length, output_length, hash_ids; - is standard input")->required();
  command->add_option("--requests", options.requests, "Requests to run (all)")->check(whole(1, many));
  command->add_option("--start", options.start, "Number of the first request")->check(whole(0, many));
  command->add_option("--scale", options.scale, "Shrinks blocks of 512 tokens, 64 at least, and with them all lengths; below 0.125 also the number of blocks")->check(scale_fault)->capture_default_str();
  command->add_option("--pages", options.pages, "Pages of the pools")->check(whole(1, many))->capture_default_str();
  command->add_option("--page-size", options.page_size, "Tokens of a page, a multiple of 64 (the trace's block)")->check(whole(64, 1ULL << 20));
  command->add_option("--batch-tokens", options.batch_tokens, "Tokens of a step at most")->check(whole(1, 1ULL << 20))->capture_default_str();
  command->add_option("--piece", options.piece, "Tokens of one prompt in a step at most")->check(whole(1, 1ULL << 20))->capture_default_str();
  command->add_option("--lanes", options.lanes, "Requests that run at a time")->check(whole(1, 1ULL << 16))->capture_default_str();
  command->add_option("--layers", options.layers, "Gated-delta layers beside the attention")->check(whole(1, 64))->capture_default_str();
  command->add_option("--window", options.window, "Positions that a token attends to")->check(whole(1, many))->capture_default_str();
  command->add_option("--draft", options.draft, "Share of decode steps that verify a draft tree, 0 to 1; needs 6 tokens of the step's and 6 pages a lane")->check(share_fault)->capture_default_str();
  command->add_option("--verify", options.verify, "Share of requests that are computed once more without cache, 0 to 1; the first is one of them")->check(share_fault)->capture_default_str();
  command->add_option("--seed", options.seed, "Seed of activations, drafts and samples")->check(whole(0, ~0ULL))->capture_default_str();
  command->add_option("--backend", options.backend, "Backend by name; the default one otherwise")->check(empty_fault);
  command->add_option("--threads", given->threads, "Threads (QUIRE_THREADS, else the machine's)")->check(whole(1, 4096));
  command->add_option("--max-memory", given->max_memory, "Most memory for pools, tables and kept outputs, as 4G (half the machine's)")->check(bytes_fault);
#ifndef NDEBUG
  options.check = true;
#endif
  command->add_flag("--check", options.check, "Look for broken obligations (F3) at every step; a debug build always does");
  command->add_option("--fault", given->fault, fmt::format("Plant a mistake: {}", fmt::join(replay::fault_names(), ", ")))->check(empty_fault);
  command->add_option("--save", options.save, "Write a step's or request's calls, as they should be, to NAME.json and NAME.npz for quire eval (step 0)")->check(empty_fault);
  command->add_option("--save-step", options.save_step, "The step")->check(whole(0, many));
  command->add_option("--save-request", options.save_request, "The request, by its place in the trace")->check(whole(0, many));
  CLI::Option* json = command->add_option("--json", given->json, "Report as JSON, to the file or else to standard output in place of the text")->expected(0, 1);
  command->footer("Exit status: 0 no mismatch, 1 mismatches (as a planted mistake should give), 2 input or options that can't be used, 130 interrupted.");
  command->callback([given, json, &exit_code] {
    given->wants_json = json->count() > 0;
    try {
      exit_code = run_replay(*given);
    } catch (const Error& error) {
      complain("quire replay: {}\n", error.what());
      exit_code = 2;
    }
  });
}

}  // namespace quire::tools
