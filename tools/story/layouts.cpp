// Layouts of one sequence: rows, paged, chunked, lanes, select.
#include "layouts.h"

#include "tabled.h"

#include <algorithm>
#include <utility>
#include <array>
#include <stdexcept>

namespace quire::story {

namespace {

/// A4, A11: the sequence owns a run of slots, and each token's index is the one before, advanced.
class Rows final : public Tabled {
 public:
  explicit Rows(const Setup& setup) : Tabled(setup, Slots(setup.context)) {}
  std::vector<Logits> feed(const std::vector<Tokens>& next) override {
    return call({{append(0, next[0])}});
  }

 private:
  Index adapt(Index) override {
    const std::int64_t fed = length(0) - std::exchange(length_before_, length(0));
    if (index_ && fed == 1) {
      index_ = index_->advance();
    } else {
      const std::int64_t lens[] = {length(0)};
      index_ = Index::rows(setup_.context, lens);
    }
    return *index_;
  }
  std::optional<Index> index_;
  std::int64_t length_before_ = 0;
};

/// A slot for each position from shuffled pages of 16; a page is taken when the sequence reaches
/// it.
class Paged final : public Tabled {
 public:
  explicit Paged(const Setup& setup)
      : Tabled(setup, Slots::shuffled_pages(setup.context / page_size + 4, 16)) {}
  std::vector<Logits> feed(const std::vector<Tokens>& next) override {
    return call({{append(0, next[0])}});
  }

 private:
  void allocate(std::size_t row, std::int64_t position) override {
    std::vector<std::int64_t>& table = sequences_[row].table;
    if (table[static_cast<std::size_t>(position)] >= 0) return;
    std::int64_t slot = 0;
    for (std::int64_t i = 0; i < page_size; ++i) {
      slot = slots_.take();
      if (position + i < setup_.context) table[static_cast<std::size_t>(position + i)] = slot;
    }
  }
};

/// Several tokens come in odd pieces. Every 32 tokens the whole story does, in slots that other
/// tokens had.
class Chunked final : public Tabled {
 public:
  explicit Chunked(const Setup& setup) : Tabled(setup, Slots(setup.context + 8)) {}
  std::vector<Logits> feed(const std::vector<Tokens>& next) override {
    const Lane fed = append(0, next[0]);
    std::int64_t begin = fed.positions.front();
    if (length(0) / again_every > begin / again_every) {
      for (std::int64_t position = 0; position < length(0); ++position) release(0, position);
      for (std::int64_t position = 0; position < length(0); ++position) allocate(0, position);
      begin = 0;
    }
    std::vector<Logits> logits;
    for (std::size_t piece = 0; begin < length(0); ++piece) {
      const std::int64_t end = std::min(length(0), begin + pieces[piece % pieces.size()]);
      logits = call({{lane(0, begin, end)}});
      begin = end;
    }
    return logits;
  }

 private:
  static constexpr std::int64_t again_every = 32;
  static constexpr std::array<std::int64_t, 8> pieces{1, 3, 5, 7, 11, 13, 17, 2};
};

/// Each call evaluates the new tokens and the last few before them in new slots, dealt out to lanes
/// that all name one row: every token reads what other lanes store in the same call (C2).
class Lanes final : public Tabled {
 public:
  explicit Lanes(const Setup& setup) : Tabled(setup, Slots(setup.context + 8)) {}
  std::vector<Logits> feed(const std::vector<Tokens>& next) override {
    const std::int64_t begin =
        std::max<std::int64_t>(0, append(0, next[0]).positions.front() - again);
    for (std::int64_t position = begin; position < length(0); ++position) release(0, position);
    for (std::int64_t position = begin; position < length(0); ++position) allocate(0, position);
    // The lane dealt out first holds the last token.
    std::vector<Lane> dealt;
    for (std::int64_t first = 0; first < std::min(lanes, length(0) - begin); ++first) {
      Lane one;
      for (std::int64_t position = begin + (length(0) - 1 - begin - first) % lanes;
           position < length(0); position += lanes) {
        one.positions.push_back(position);
        one.tokens.push_back(sequences_[0].tokens[static_cast<std::size_t>(position)]);
      }
      dealt.push_back(std::move(one));
    }
    return {call(dealt).front()};
  }

 private:
  static constexpr std::int64_t lanes = 3;
  static constexpr std::int64_t again = 5;
};

/// A8: each token chooses the columns that it sees anyway, in their order.
class Select final : public Tabled {
 public:
  explicit Select(const Setup& setup) : Tabled(setup, Slots(setup.context)) {}
  std::vector<Logits> feed(const std::vector<Tokens>& next) override {
    return call({{append(0, next[0])}});
  }

 private:
  Index adapt(Index index) override {
    const std::int64_t seq = index.seq(), most = length(0);
    Tensor columns = Tensor::empty(DType::i64, {1, seq, most});
    for (std::int64_t i = 0; i < seq; ++i) {
      const std::int64_t seen = index.pos().data<std::int64_t>()[i] + 1;
      for (std::int64_t c = 0; c < most; ++c)
        columns.data<std::int64_t>()[i * most + c] = c < seen ? c : -1;
      counts_.columns_selected += seen;
    }
    return index.select(std::move(columns));
  }
};

constexpr std::array<std::string_view, 9> names{"rows",   "paged", "chunked", "shared", "forked",
                                                "packed", "lanes", "draft",   "select"};

}  // namespace

std::span<const std::string_view> layout_names() { return names; }
bool has_table(std::string_view layout_name) { return layout_name != "packed"; }

std::unique_ptr<Layout> make_layout(std::string_view name, const Setup& setup) {
  if (name == "rows") return std::make_unique<Rows>(setup);
  if (name == "paged") return std::make_unique<Paged>(setup);
  if (name == "chunked") return std::make_unique<Chunked>(setup);
  if (name == "shared") return make_branches(setup, false);
  if (name == "forked") return make_branches(setup, true);
  if (name == "packed") return make_packed(setup);
  if (name == "lanes") return std::make_unique<Lanes>(setup);
  if (name == "draft") return make_draft(setup);
  if (name == "select") return std::make_unique<Select>(setup);
  std::string allowed;
  for (const std::string_view known : names) allowed += std::string(known) + ", ";
  throw std::runtime_error("layout \"" + std::string(name) + "\" is unknown; allowed: " + allowed +
                           "all");
}

}  // namespace quire::story
