// PageTable::from: one block table names an attention layer's blocks and a recurrent layer's pages (law F1).
#include <quire/index_view.h>
#include <quire/pages.h>

#include <fmt/format.h>

#include <limits>
#include <unordered_map>

namespace quire {

namespace {

std::int32_t as_i32(std::int64_t number, std::string_view argument) {
  if (number < std::numeric_limits<std::int32_t>::min() || number > std::numeric_limits<std::int32_t>::max()) {
    reject(argument, fmt::format("{}", number), "page ids and token counts of 32 bits");
  }
  return static_cast<std::int32_t>(number);
}

// F1's rejections that concern the kind of index.
const BlockTable& require_block_table(const Index& index, std::int64_t page_size) {
  if (!index.is_tabled()) reject("index", fmt::format("a {} index", name(index.kind())), "a tabled index");
  if (index.columns().defined()) reject("index", "an index with a selection", "an index without one");
  if (index.draft_tokens()) reject("index", "a draft", "an index that is none");
  const BlockTable* blocks = index.block_table(page_size);
  if (blocks == nullptr) reject("page_size", fmt::format("{}", page_size), "a block size that the index has a table of");
  if (!index.device().is_host() || !blocks->blocks.device().is_host()) {
    throw Error(ErrorCode::unsupported, "index", "index: its tensors lie on a device; allowed: host tensors");
  }
  return *blocks;
}

// The lane's first position and number of tokens, its real positions being consecutive.
std::pair<std::int64_t, std::int64_t> consecutive_tokens(const IndexView& view, std::int64_t b) {
  std::int64_t first = -1;
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < view.seq(); ++i) {
    const std::int64_t t = view.position(b, i);
    if (t < 0) continue;
    if (count == 0) first = t;
    if (t - first != count) reject("index", fmt::format("position {} of lane {}", t, b), fmt::format("{}, the lane's next position", first + count));
    ++count;
  }
  return {first, count};
}

}  // namespace

PageTable PageTable::from(const Index& index, std::int64_t page_size, std::optional<std::vector<std::int64_t>> scratch) {
  const BlockTable& blocks = require_block_table(index, page_size);
  const IndexAbi abi(index);
  const IndexView view(*abi.get());
  const quire_tensor block_view = blocks.blocks.view();
  const IntegerView block(&block_view);
  const std::int64_t width = blocks.blocks.size(1);
  std::unordered_map<std::int64_t, std::int64_t> lane_of_row;
  std::vector<std::int32_t> cu_seqlens{0}, page_indices, page_indptr{0}, last_page_len;
  std::size_t scratch_used = 0;
  for (std::int64_t b = 0; b < view.batch(); ++b) {
    const auto [first, count] = consecutive_tokens(view, b);
    if (count == 0) {
      last_page_len.push_back(as_i32(page_size, "page_size"));
      if (scratch) {
        if (scratch_used == scratch->size()) reject("scratch", fmt::format("{} page ids", scratch->size()), "one for each lane of padding");
        page_indices.push_back(as_i32((*scratch)[scratch_used++], "scratch"));
      }
    } else {
      if (!view.row_in_table(b)) reject("index", fmt::format("row {} of lane {}", view.row(b), b), fmt::format("rows 0 to {}", view.rows() - 1));
      const auto [other, is_new] = lane_of_row.try_emplace(view.row(b), b);
      if (!is_new) reject("index", fmt::format("row {} in lanes {} and {}", view.row(b), other->second, b), "each row in one lane with tokens");
      const std::int64_t last = first + count - 1;
      const std::int64_t pages = last / page_size + 1;
      if (pages > width) {
        reject("index", fmt::format("position {} of lane {}", last, b), fmt::format("positions inside the block table's {} blocks of {}", width, page_size));
      }
      for (std::int64_t j = 0; j < pages; ++j) page_indices.push_back(as_i32(block(view.row(b), j), "index"));
      last_page_len.push_back(as_i32(last % page_size + 1, "page_size"));
    }
    cu_seqlens.push_back(as_i32(cu_seqlens.back() + count, "index"));
    page_indptr.push_back(as_i32(static_cast<std::int64_t>(page_indices.size()), "index"));
  }
  if (scratch && scratch_used != scratch->size()) reject("scratch", fmt::format("{} page ids", scratch->size()), fmt::format("{}, one for each lane of padding", scratch_used));
  const auto tensor = [](const std::vector<std::int32_t>& values) {
    return Tensor::of(std::span<const std::int32_t>(values), {static_cast<std::int64_t>(values.size())});
  };
  return {tensor(cu_seqlens), tensor(page_indices), tensor(page_indptr), tensor(last_page_len), page_size};
}

}  // namespace quire
