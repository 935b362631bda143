// Index builders (laws A1-A11, A13): each checks its argument, then returns a new value.
#include <quire/index.h>
#include <quire/index_view.h>

#include "layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace quire {

namespace {

std::string describe(const Tensor& tensor) {
  return tensor.defined() ? fmt::format("{}{}", name(tensor.dtype()), to_string(tensor.shape())) : "nothing";
}

// A host or device tensor of `dtype` and exactly `shape`; -1 in `shape` allows any positive size.
void require(const Tensor& tensor, std::string_view argument, DType dtype, std::span<const std::int64_t> shape,
             std::string_view allowed) {
  bool right = tensor.defined() && tensor.dtype() == dtype && tensor.rank() == static_cast<std::int64_t>(shape.size());
  for (std::size_t axis = 0; right && axis < shape.size(); ++axis) {
    right = shape[axis] < 0 ? tensor.shape()[axis] > 0 : tensor.shape()[axis] == shape[axis];
  }
  if (!right) reject(argument, describe(tensor), allowed);
  require_layout(tensor, argument);
}

void require_block_sizes(std::span<const std::int64_t> sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 2) reject("every", fmt::format("blocks of {} positions", sizes[i]), "block sizes of 2 or more");
    if (std::find(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(i), sizes[i]) != sizes.begin() + static_cast<std::ptrdiff_t>(i)) {
      reject("every", fmt::format("blocks of {} positions twice", sizes[i]), "each block size once");
    }
  }
}

// [rows, width] of slots row*width, row*width + 1, ...
Tensor runs_of_slots(std::int64_t rows, std::int64_t width, std::string_view argument) {
  Tensor table = Tensor::empty(DType::i64, {rows, width}, argument);
  for (std::int64_t slot = 0; slot < rows * width; ++slot) table.data<std::int64_t>()[slot] = slot;
  return table;
}

// [lanes, seq]: lane b's tokens of the given lengths, one sequence after another, padded on the left.
Tensor left_padded(std::int64_t seq, std::span<const std::vector<std::int64_t>> lens, std::string_view argument) {
  const auto batch = static_cast<std::int64_t>(lens.size());
  Tensor pos = Tensor::empty(DType::i64, {batch, seq}, argument);
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int64_t* lane = pos.data<std::int64_t>() + b * seq;
    std::int64_t total = 0;
    for (const std::int64_t length : lens[static_cast<std::size_t>(b)]) total += length;
    std::fill(lane, lane + (seq - total), -1);
    std::int64_t place = seq - total;
    for (const std::int64_t length : lens[static_cast<std::size_t>(b)]) {
      for (std::int64_t p = 0; p < length; ++p) lane[place++] = p;
    }
  }
  return pos;
}

std::vector<std::vector<std::int64_t>> one_sequence_each(std::span<const std::int64_t> lens) {
  std::vector<std::vector<std::int64_t>> lanes;
  lanes.reserve(lens.size());
  for (const std::int64_t length : lens) lanes.push_back({length});
  return lanes;
}

}  // namespace

std::string_view name(IndexKind kind) {
  switch (kind) {
    case IndexKind::whole: return "whole";
    case IndexKind::packed: return "packed";
    case IndexKind::tabled: return "tabled";
  }
  return "tabled";
}

Index Index::make(Tensor pos, Tensor table, Tensor row, std::vector<BlockTable> every) {
  require(pos, "pos", DType::i64, std::array<std::int64_t, 2>{-1, -1}, "i64 [B, S], no empty axis");
  require(table, "table", DType::i64, std::array<std::int64_t, 2>{-1, -1}, "i64 [R, C], no empty axis");
  const std::int64_t batch = pos.size(0);
  const std::int64_t rows = table.size(0);
  if (row.defined()) {
    require(row, "row", DType::i64, std::array{batch}, fmt::format("i64 [{}], one row per lane", batch));
  } else if (rows != batch) {
    reject("table", fmt::format("{} rows", rows), fmt::format("{} rows, one per lane, where row is absent", batch));
  }
  std::vector<std::int64_t> sizes;
  for (const BlockTable& blocks : every) sizes.push_back(blocks.block_size);
  require_block_sizes(sizes);
  for (const BlockTable& blocks : every) {
    require(blocks.blocks, "every", DType::i64, std::array<std::int64_t, 2>{rows, -1},
            fmt::format("blocks i64 [{}, C_m] for blocks of {} positions", rows, blocks.block_size));
  }
  Index index;
  index.kind_ = IndexKind::tabled;
  index.pos_ = std::move(pos);
  index.table_ = std::move(table);
  index.row_ = std::move(row);
  index.block_tables_ = std::move(every);
  return index;
}

Index Index::rows(std::int64_t context, std::span<const std::int64_t> lens, std::span<const std::int64_t> every) {
  if (context <= 0) reject("context", fmt::format("{}", context), "1 or more");
  if (lens.empty()) reject("lens", "no lane", "one length or more");
  for (const std::int64_t length : lens) {
    if (length < 0 || length > context) reject("lens", fmt::format("a length of {}", length), fmt::format("0 to the context, {}", context));
  }
  const std::int64_t longest = *std::max_element(lens.begin(), lens.end());
  if (longest == 0) reject("lens", "all lengths zero", "one length of 1 or more (no axis is empty)");
  require_block_sizes(every);
  const auto batch = static_cast<std::int64_t>(lens.size());
  Index index;
  index.kind_ = IndexKind::tabled;
  index.table_ = runs_of_slots(batch, context, "context");
  index.pos_ = left_padded(longest, one_sequence_each(lens), "lens");
  for (const std::int64_t m : every) {
    index.block_tables_.push_back({m, runs_of_slots(batch, context / m + (context % m != 0 ? 1 : 0), "context")});
  }
  return index;
}

Index Index::untabled(IndexKind kind, std::int64_t seq, std::span<const std::vector<std::int64_t>> lens) {
  if (seq <= 0) reject("seq", fmt::format("{}", seq), "1 or more");
  if (lens.empty()) reject("lens", "no lane", "one lane or more");
  for (const std::vector<std::int64_t>& lane : lens) {
    std::int64_t left = seq;
    for (const std::int64_t length : lane) {
      if (length < 0 || length > left) {
        reject("lens", fmt::format("lengths [{}] in one lane", fmt::join(lane, ", ")), fmt::format("0 or more each, {} together at most", seq));
      }
      left -= length;
    }
  }
  Index index;
  index.kind_ = kind;
  index.pos_ = left_padded(seq, lens, "seq");
  return index;
}

Index Index::whole(std::int64_t batch, std::int64_t seq, std::optional<std::vector<std::int64_t>> lens) {
  if (batch <= 0) reject("batch", fmt::format("{}", batch), "1 or more");
  if (seq <= 0) reject("seq", fmt::format("{}", seq), "1 or more");
  if (lens && static_cast<std::int64_t>(lens->size()) != batch) {
    reject("lens", fmt::format("{} lengths", lens->size()), fmt::format("{}, one per lane", batch));
  }
  checked_bytes(DType::i64, std::array{batch, seq}, "seq");
  if (!lens) lens.emplace(static_cast<std::size_t>(batch), seq);
  return untabled(IndexKind::whole, seq, one_sequence_each(*lens));
}

Index Index::packed(std::int64_t seq, std::span<const std::vector<std::int64_t>> lens) {
  return untabled(IndexKind::packed, seq, lens);
}

// This index and its copies on other devices, each changed.
template <typename Change>
Index Index::changed(const Change& change) const {
  Index index = *this;
  change(index);
  for (Index& copy : index.copies_) change(copy);
  return index;
}

void Index::require_one_place(std::string_view builder) const {
  if (!copies_.empty()) reject(builder, fmt::format("an index on {} devices", copies_.size() + 1), "an index that lies in one place; place it afterwards");
}

Index Index::window(std::int64_t w) const {
  if (w <= 0) reject("window", fmt::format("{}", w), "1 or more");
  return changed([&](Index& index) { index.window_ = w; });
}

Index Index::select(Tensor columns) const {
  require_one_place("select");
  if (draft_) reject("select", "an index that is a draft", "any other index");
  require(columns, "select", DType::i64, std::array<std::int64_t, 3>{batch(), seq(), -1},
          fmt::format("i64 [{}, {}, k], k of 1 or more", batch(), seq()));
  Index index = *this;
  index.columns_ = std::move(columns);
  return index;
}

Index Index::draft(Tensor slots, Tensor sees) const {
  require_one_place("draft");
  if (!is_tabled()) reject("draft", fmt::format("a {} index", name(kind_)), "a tabled index");
  if (reads_ != 1) reject("draft", fmt::format("an index read in blocks of {}", reads_), "an index of positions");
  if (columns_.defined()) reject("draft", "an index with a selection", "an index without one");
  require(slots, "slots", DType::i64, std::array{batch(), seq()}, fmt::format("i64 [{}, {}]", batch(), seq()));
  require(sees, "sees", DType::boolean, std::array{batch(), seq(), seq()}, fmt::format("bool [{}, {}, {}]", batch(), seq(), seq()));
  Index index = *this;
  index.draft_ = Draft{std::move(slots), std::move(sees)};
  return index;
}

const BlockTable* Index::block_table(std::int64_t m) const {
  for (const BlockTable& blocks : block_tables_) {
    if (blocks.block_size == m) return &blocks;
  }
  return nullptr;
}

Index Index::every(std::int64_t m) const {
  if (m <= 0) reject("every", fmt::format("{}", m), "1 or more");
  if (m == reads_) return *this;  // A10: identities first
  if (reads_ != 1) reject("every", fmt::format("{} on an index read in blocks of {}", m, reads_), fmt::format("{}", reads_));
  if (columns_.defined()) reject("every", "an index with a selection", "an index without one");
  if (draft_) reject("every", "a draft", "an index that is none");
  if (kind_ == IndexKind::packed) reject("every", "a packed index", "a whole or a tabled one");
  if (is_tabled() && block_table(m) == nullptr) reject("every", fmt::format("blocks of {}", m), "a block size that the index has a table of");
  return changed([&](Index& index) { index.reads_ = m; });
}

Index Index::advance() const {
  require_one_place("advance");
  if (!is_tabled()) reject("advance", fmt::format("a {} index", name(kind_)), "a tabled index");
  if (!device().is_host() || (row_.defined() && !row_.device().is_host())) {
    throw Error(ErrorCode::unsupported, "advance", "advance: the positions lie on a device; allowed: host tensors (a device has an op for this)");
  }
  Index index = *this;
  index.columns_ = {};
  index.draft_.reset();
  const IndexAbi abi(*this);
  const IndexView view(*abi.get());
  index.pos_ = Tensor::empty(DType::i64, {batch(), 1});
  // A lane of padding has -1 as its greatest position, so it goes to 0.
  for (std::int64_t b = 0; b < batch(); ++b) {
    if (view.greatest(b) == std::numeric_limits<std::int64_t>::max()) {
      reject("advance", fmt::format("position {} in lane {}", view.greatest(b), b), "positions that have a next one");
    }
    index.pos_.data<std::int64_t>()[b] = view.greatest(b) + 1;
  }
  return index;
}

std::int64_t Index::context() const {
  if (is_tabled()) return reads_ == 1 ? table_.size(1) : block_table(reads_)->blocks.size(1);
  return seq() / reads_ + (seq() % reads_ != 0 ? 1 : 0);  // B3
}

}  // namespace quire
