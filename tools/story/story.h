// The command `quire story`: text of a language model whose caches lie in any layout, on any
// backend.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace CLI {
class App;
}

namespace quire::story {

struct StoryOptions {
  std::string model = "../shared/data/stories260K.bin";
  std::string tokenizer = "../shared/data/tok512.bin";
  std::string prompt;
  std::int64_t tokens = 256;  ///< that a story is evaluated on, the prompt's included
  double temperature = 0;     ///< 0 takes the best token
  std::uint64_t seed = 0;
  std::string layout = "rows";
  std::string backend;  ///< empty: the default one
  std::string fault;    ///< empty: none
  /// A file for the report as JSON; empty: standard output, where it then stands instead of the
  /// text.
  std::optional<std::string> json;
};

}  // namespace quire::story

namespace quire::tools {

/// Returns the exit status: 0; 1 where stories disagree or a planted fault changed nothing; 2 after
/// an error; 130 after Ctrl-C.
int run_story(const story::StoryOptions& options);

/// Adds the subcommand; `exit_code` gets its exit status when it ran.
void add_story(CLI::App& app, int& exit_code);

}  // namespace quire::tools
