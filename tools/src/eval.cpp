// quire eval: runs the cases of files and prints one JSON result per case.
#include "case_stream.h"
#include "terminal.h"
#include "commands.h"
#include "interrupt.h"

#include "arrays/array_file.h"
#include "case/evaluate.h"

#include <quire/registry.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

namespace quire::tools {

namespace {

struct EvalOptions {
  std::vector<std::string> files;
  std::string backend;
  std::string side;
  bool quiet = false;
};

// A file's or standard input's whole text.
std::string read_text(const std::string& file) {
  std::FILE* stream = file == "-" ? stdin : std::fopen(file.c_str(), "rb");
  const auto fail = [&](const char* what) {
    const std::string message = fmt::format("{}: {}: {}", file, what, std::strerror(errno));
    if (stream != nullptr && stream != stdin) std::fclose(stream);
    throw Error(ErrorCode::unavailable, "case", message);
  };
  if (stream == nullptr) fail("can't be opened");
  std::string text;
  char block[1 << 16];
  while (const std::size_t count = std::fread(block, 1, sizeof block, stream)) text.append(block, count);
  if (std::ferror(stream) != 0 && !interrupted()) fail("can't be read");
  if (stream != stdin) std::fclose(stream);
  return text;
}

// Before anything runs: results must not name a file that can't be.
void require_writable(const std::string& side) {
  const std::filesystem::path path(side);
  if (path.extension() != ".npz" && path.extension() != ".safetensors") reject("side", side, "a .npz or .safetensors file");
  const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  if (access(folder.c_str(), W_OK) != 0) {
    throw Error(ErrorCode::unavailable, "side", fmt::format("side: {}: {}", side, std::strerror(errno)));
  }
}

int run_eval(const EvalOptions& options) {
  if (options.files.empty()) reject("case", "no file", "case files; - is standard input");
  if (!options.side.empty()) require_writable(options.side);
  conformance::EvaluateOptions evaluate;
  evaluate.on = on_host_tensors(options.backend.empty() ? default_backend() : backend(options.backend));
  std::map<std::string, Tensor> side;
  std::int64_t number = 0;
  if (!options.side.empty()) {
    evaluate.divert = [&](const std::string& name, const Tensor& tensor) {
      std::string key = fmt::format("{}.{}", number, name);
      for (int again = 2; side.contains(key); ++again) key = fmt::format("{}.{}.{}", number, name, again);
      side.emplace(key, tensor.clone());
      return nlohmann::json{{"file", std::filesystem::path(options.side).filename().string()}, {"key", key}};
    };
  }
  std::int64_t wrong = 0;
  watch_interrupts();
  for (const std::string& file : options.files) {
    evaluate.folder = file == "-" ? std::filesystem::path() : std::filesystem::path(file).parent_path();
    const std::string text = read_text(file);
    try {
      if (!interrupted()) for_each_case(text, [&](const nlohmann::json& test_case) {
        const conformance::Evaluated evaluated = conformance::evaluate(test_case, evaluate);
        if (!evaluated.ok || !options.quiet) fmt::print("{}\n", evaluated.text);
        if (!evaluated.ok) ++wrong;
        ++number;
        if (std::ferror(stdout) != 0) throw Error(ErrorCode::unavailable, "output", "standard output can't be written");
        return !interrupted();
      });
    } catch (const Error& error) {
      std::fflush(stdout);
      complain("quire eval: {}: {}\n", printable(file), error.what());
      return 2;
    }
    if (interrupted()) {
      std::fflush(stdout);
      complain("quire eval: interrupted after {} cases\n", number);
      return interrupted_exit;
    }
  }
  if (!options.side.empty()) arrays::save(options.side, side);
  if (options.quiet) complain("{} case{}, {} in error or not as expected\n", number, number == 1 ? "" : "s", wrong);
  return wrong == 0 ? 0 : 1;
}

}  // namespace

void add_eval(CLI::App& app, int& exit_code) {
  auto* command = app.add_subcommand("eval", "Run cases (one JSON object, a list, or JSON lines) and print one JSON result per case");
  const auto options = std::make_shared<EvalOptions>();
  command->add_option("case", options->files, "Case files; - is standard input");
  command->add_option("--backend", options->backend, "The backend that runs them (quire backends lists them)")->check(empty_fault);
  command->add_option("--side", options->side, "Put result tensors into this .npz or .safetensors file")->check(empty_fault);
  command->add_flag("--quiet", options->quiet, "Print only results in error or not as expected, and a summary");
  command->footer("Exit status: 0 all as they should be, 1 a case in error or not as expected, 2 input that can't be read.");
  command->callback([options, &exit_code] {
    try {
      exit_code = run_eval(*options);
    } catch (const Error& error) {
      complain("quire eval: {}\n", error.what());
      exit_code = 2;
    }
  });
}

}  // namespace quire::tools
