// The index: where a call's tokens sit in a cache (laws A). An immutable value.
#pragma once

#include <quire/tensor.h>

#include <optional>
#include <utility>
#include <vector>

namespace quire {

enum class IndexKind : std::int32_t { whole = QUIRE_INDEX_WHOLE, packed = QUIRE_INDEX_PACKED, tabled = QUIRE_INDEX_TABLED };

/// "whole", "packed" or "tabled".
std::string_view name(IndexKind kind);

/// A3: slot of block j of row r at blocks[r, j], i64 [R, C_m]; -1 where none is allocated.
struct BlockTable {
  std::int64_t block_size = 0;
  Tensor blocks;
};

/// A9: slots i64 [B, S], sees bool [B, S, S].
struct Draft {
  Tensor slots;
  Tensor sees;
};

/// One report of an index's structure (A14), for instance {"pos", "i64[2, 3]"} or {"window", "4"}.
using StructureEntry = std::pair<std::string, std::string>;
using Structure = std::vector<StructureEntry>;

/// Copying shares the tensors (A13). Every builder raises invalid_argument naming its argument by the case format's field and leaves
/// this index as it is. Tensors must be host or device tensors of i64 (sees: bool), dense in their innermost axis.
/// Source: the cache-index seed, after Kaun's Cache_index.
class Index {
 public:
  /// A1: tokens at pos[B, S] of sequences whose slots table[R, C] names; row[B] is each lane's sequence.
  static Index make(Tensor pos, Tensor table, Tensor row = {}, std::vector<BlockTable> every = {});
  /// A4: sequence b owns slots b*context .. b*context + context - 1; lane b holds positions 0 .. lens[b] - 1, padded on the left.
  static Index rows(std::int64_t context, std::span<const std::int64_t> lens, std::span<const std::int64_t> every = {});
  /// A5: whole sequences of `seq` positions, or of lens[b], padded on the left.
  static Index whole(std::int64_t batch, std::int64_t seq, std::optional<std::vector<std::int64_t>> lens = {});
  /// A6: lane b holds sequences of lens[b][0], lens[b][1], ... tokens one after another, padded on the left to seq.
  static Index packed(std::int64_t seq, std::span<const std::vector<std::int64_t>> lens);

  /// A7: tokens see the last w positions at or before their own.
  Index window(std::int64_t w) const;
  /// A8: token (b, i) reads only columns[b, i, :], in that order. i64 [B, S, k].
  Index select(Tensor columns) const;
  /// A9: the call's tokens are a draft.
  Index draft(Tensor slots, Tensor sees) const;
  /// A10: the index read in blocks of m positions.
  Index every(std::int64_t m) const;
  /// A11: the next token of every lane. Reads positions on the host (`unsupported` for tensors elsewhere).
  Index advance() const;
  /// A15: the index with its tensors whole on each device, and nowhere else (name the host to keep it). A call takes the copy on its own
  /// device. Asked itself, the index answers with its first copy. Builders work on every copy; those that bring tensors (select, draft) and
  /// `advance` want an index that lies in one place. The copies are made when it returns. Raises `unavailable` (devices) for a device that no
  /// loaded backend has, invalid_argument (devices) for none or one twice.
  Index place(std::span<const Device> devices) const;
  Index place(std::initializer_list<Device> devices) const { return place(std::span<const Device>(devices.begin(), devices.size())); }
  bool is_on(Device device) const;
  /// The copy on a device; raises invalid_argument (index) where there is none.
  const Index& on(Device device) const;

  IndexKind kind() const { return kind_; }
  bool is_tabled() const { return kind_ == IndexKind::tabled; }
  /// B and S.
  std::int64_t batch() const { return pos_.size(0); }
  std::int64_t seq() const { return pos_.size(1); }
  /// Columns of the table that the index reads: C, C_m in blocks; the lane's tokens or blocks on a whole index. A draft's tokens come
  /// after them and are not counted.
  std::int64_t context() const;
  /// Width of the positions' table (S on a whole index).
  std::int64_t positions_context() const { return is_tabled() ? table_.size(1) : seq(); }

  const Tensor& pos() const { return pos_; }
  const Tensor& table() const { return table_; }      ///< undefined unless tabled
  const Tensor& row() const { return row_; }          ///< undefined where absent
  const std::vector<BlockTable>& block_tables() const { return block_tables_; }
  std::int64_t reads() const { return reads_; }       ///< block size, 1 for positions
  std::optional<std::int64_t> window_size() const { return window_; }
  const Tensor& columns() const { return columns_; }  ///< undefined without a selection
  const std::optional<Draft>& draft_tokens() const { return draft_; }
  /// The block table of m positions, or null.
  const BlockTable* block_table(std::int64_t m) const;
  Device device() const { return pos_.device(); }

  /// A14. Two indices share a compiled step exactly when their structures are equal.
  Structure structure() const;

 private:
  Index() = default;
  template <typename Change>
  Index changed(const Change& change) const;
  void require_one_place(std::string_view builder) const;
  static Index untabled(IndexKind kind, std::int64_t seq, std::span<const std::vector<std::int64_t>> lens);

  IndexKind kind_ = IndexKind::whole;
  Tensor pos_;
  Tensor table_;
  Tensor row_;
  std::vector<BlockTable> block_tables_;
  std::int64_t reads_ = 1;
  std::optional<std::int64_t> window_;
  Tensor columns_;
  std::optional<Draft> draft_;
  std::vector<Index> copies_;  // on further devices (A15)
};

/// The ABI's form of an index; valid while this object lives.
class IndexAbi {
 public:
  explicit IndexAbi(const Index& index);
  IndexAbi(const IndexAbi&) = delete;
  IndexAbi& operator=(const IndexAbi&) = delete;
  const quire_index* get() const { return &abi_; }
  /// Adds the index's tensors, which its memory stands on.
  void keep(std::vector<Tensor>& tensors) const;

 private:
  Index index_;
  quire_tensor pos_{}, table_{}, row_{}, columns_{}, slots_{}, sees_{};
  std::vector<quire_tensor> blocks_;
  std::vector<quire_block_table> block_tables_;
  quire_index abi_{};
};

}  // namespace quire
