// What the tests of replay share: traces, a run with its settings, a backend that is watched.
#pragma once

#include "replay/choices.h"
#include "replay/replay.h"

#include <quire/registry.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

namespace quire::replay::testing {

using nlohmann::json;

// A file that goes with the test.
class File {
 public:
  explicit File(const std::string& text, const std::string& name = "trace.jsonl")
      : path_(std::filesystem::temp_directory_path() / ("quire_replay_" + std::to_string(::getpid()) + "_" + name)) {
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline std::string line(std::int64_t at, std::int64_t input, std::int64_t output, const std::vector<std::int64_t>& ids) {
  return json{{"timestamp", at}, {"input_length", input}, {"output_length", output}, {"hash_ids", ids}}.dump() + "\n";
}

// Requests that share prefixes of different length, with uneven ends, some at a block's end, some with little or nothing to put out;
// `longer` times as much for the others.
inline std::string made_trace(std::int64_t requests, std::int64_t longer = 1) {
  std::string text;
  std::int64_t fresh = 100;
  for (std::int64_t r = 0; r < requests; ++r) {
    const std::int64_t blocks = 1 + chosen(9, Choice::nodes, 6, r), shared = chosen(9, Choice::parent, blocks + 1, r);
    std::vector<std::int64_t> ids;
    for (std::int64_t j = 0; j < blocks; ++j) ids.push_back(j < shared ? j : fresh++);
    const std::int64_t last = r % 5 == 0 ? 512 : 1 + chosen(9, Choice::guess, 511, r);
    if (last < 512 && ids.back() < 100) ids.back() = fresh++;  // an id of a block that is not full is its own
    text += line(r * 40, (blocks - 1) * 512 + last, r % 7 == 3 ? r % 2 : longer * (20 + 13 * (r % 11)), ids);
  }
  return text;
}

struct Run {
  Options options;
  std::string text = made_trace(20);
  Trace trace;
  Replayed replayed;

  Run() {
    options.scale = 0.125;
    options.verify = 1;
    options.check = true;
    options.pages = 400;
    options.max_memory = std::int64_t{1} << 32;
  }
  /// Reads the trace and fills in the options' defaults.
  Run& prepare() {
    const File file(text);
    trace = read_trace(file.path(), options.start, options.requests, options.scale);
    settle(options, trace);
    return *this;
  }
  Run& go(const Backend& on = backend("reference")) {
    prepare();
    replayed = replay::replay(options, trace, on);
    return *this;
  }
  const Engine& engine() const { return *replayed.engine; }
  std::string first() const {
    return engine().verified().mismatches.empty() ? std::string() : engine().verified().mismatches.front().message;
  }
};

inline std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was refused";
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The reference backend with somebody behind it, who sees each call when it is done and may change what it gave.
class Watched {
 public:
  using After = std::function<void(quire_op, const void*)>;
  explicit Watched(After after) { after_ = std::move(after); }
  ~Watched() { after_ = nullptr; }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  static const Backend& backend() {
    static const quire_backend_table table = [] {
      quire_backend_table copy = quire::backend("reference").table();
      copy.run = [](quire_stream* stream, quire_op op, const void* args, void* workspace, size_t bytes) {
        const quire_status status = quire::backend("reference").table().run(stream, op, args, workspace, bytes);
        if (status == QUIRE_OK && after_) after_(op, args);
        return status;
      };
      return copy;
    }();
    static const Backend watched(&table, "(a test)");
    return watched;
  }

 private:
  static inline After after_;
};

/// The calls of a run, told apart: which step and layer each belongs to, whose tokens it computed and where its memory is.
struct Calls {
  std::int64_t step = -1;
  int layer = -1;  ///< 0: attention
  bool is_draft = false;
  std::vector<std::int64_t> rows;                    ///< by lane
  std::vector<std::vector<std::int64_t>> positions;  ///< by lane, without padding
  std::vector<std::vector<std::int64_t>> parents;    ///< of a draft's tokens, by place in the lane; -1 for a root
  float* out = nullptr;
  float *k_pool = nullptr, *v_pool = nullptr;
  std::map<int, float*> states;  ///< by layer

  /// False where the call computes no output.
  bool see(quire_op op, const void* args) {
    const auto floats = [](const quire_tensor* tensor) { return static_cast<float*>(tensor->data); };
    if (op == QUIRE_OP_ATTEND) {
      const auto& call = *static_cast<const quire_attend_args*>(args);
      step += 1;
      layer = 0;
      out = floats(call.out), k_pool = floats(call.k_pool), v_pool = floats(call.v_pool);
      see(*call.index);
      return true;
    }
    const auto see_rule = [&](const quire_tensor* output, const quire_tensor* pool) {
      layer += 1;
      out = floats(output);
      states[layer] = floats(pool);
      return true;
    };
    if (op == QUIRE_OP_GDN_PREFILL) {
      const auto& call = *static_cast<const quire_gdn_prefill_args*>(args);
      return see_rule(call.output, call.output_state);
    }
    if (op == QUIRE_OP_GDN_DECODE) {
      const auto& call = *static_cast<const quire_gdn_decode_args*>(args);
      return see_rule(call.output, call.state_pool);
    }
    if (op == QUIRE_OP_GDN_VERIFY) {
      const auto& call = *static_cast<const quire_gdn_verify_args*>(args);
      return see_rule(call.output, call.state_pool);
    }
    return false;
  }

 private:
  void see(const quire_index& index) {
    const std::int64_t lanes = index.pos->shape[0], seq = index.pos->shape[1];
    const auto* pos = static_cast<const std::int64_t*>(index.pos->data);
    const auto* row = static_cast<const std::int64_t*>(index.row->data);
    is_draft = index.sees != nullptr;
    rows.assign(row, row + lanes);
    positions.assign(static_cast<std::size_t>(lanes), {});
    parents = positions;
    for (std::int64_t b = 0; b < lanes; ++b) {
      auto& own = positions[static_cast<std::size_t>(b)];
      std::copy_if(pos + b * seq, pos + (b + 1) * seq, std::back_inserter(own), [](std::int64_t p) { return p >= 0; });
      const auto count = static_cast<std::int64_t>(own.size());
      for (std::int64_t i = 0; is_draft && i < count; ++i) {
        const auto* sees = static_cast<const std::uint8_t*>(index.sees->data) + ((b + 1) * seq - count + i) * seq + seq - count;
        std::int64_t parent = -1;  // F2: of the earlier tokens that it sees the one of greatest position
        for (std::int64_t j = 0; j < count; ++j) {
          const bool is_earlier = sees[j] != 0 && own[static_cast<std::size_t>(j)] < own[static_cast<std::size_t>(i)];
          if (is_earlier && (parent < 0 || own[static_cast<std::size_t>(j)] > own[static_cast<std::size_t>(parent)])) parent = j;
        }
        parents[static_cast<std::size_t>(b)].push_back(parent);
      }
    }
  }
};

}  // namespace quire::replay::testing
