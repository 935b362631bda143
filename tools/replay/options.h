// What a replay is asked to do.
#pragma once

#include "fault.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace quire::replay {

struct Options {
  std::string trace;
  std::int64_t start = 0, requests = 0;  ///< 0: all
  double scale = 1;
  std::int64_t pages = 8192;
  std::int64_t page_size = 0;            ///< tokens; 0: the trace's block
  std::int64_t batch_tokens = 4096;      ///< of one step
  std::int64_t piece = 256;              ///< most tokens of a prompt in one step
  std::int64_t lanes = 64;               ///< requests that run at a time
  std::int64_t layers = 3;               ///< gated-delta layers, beside the one of attention
  std::int64_t window = 64;
  double draft = 0.25;                   ///< share of decode steps that are drafts
  double verify = 0.02;                  ///< share of requests that are computed once more, the first among them
  std::uint64_t seed = 0;
  bool check = false;                    ///< F3 at every step
  Fault fault = Fault::none;
  std::string backend;
  std::int64_t max_memory = 0;           ///< bytes; 0: half the machine's
  std::string save;                      ///< case file; empty: none
  std::optional<std::int64_t> save_step, save_request;
};

/// The file beside a saved case that holds its large tensors: NAME.npz.
std::filesystem::path side_file(const std::filesystem::path& case_file);

}  // namespace quire::replay
