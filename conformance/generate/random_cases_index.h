// A random cache index with what the rest of a case must know about it.
#pragma once

#include <string>
#include <vector>

#include "random_cases_parts.h"

namespace quire_tests {

enum class Form { plain, with_row, rows, whole, packed };
enum class Reader { positions, select, blocks, blocks_select, draft };

/// What an index has; drawn with `Random::pick`, so that every pair occurs.
struct IndexFeatures {
  Form form = Form::plain;
  Reader reader = Reader::positions;
  int window = 0;       // 0 none, else a kind of window
  int padding = 0;      // where padding stands: none, left, right, anywhere
  bool shared = false;  // rows that share a prefix
  bool holes = false;   // unallocated columns below a position
  bool outside_slots = false;
  bool outside_rows = false;
  bool past_context = false;
  bool extras = false;        // replaced builders, identities, advance
  bool parents_only = false;  // drafts are trees (F2), never arbitrary pairs
};

IndexFeatures pick_index_features(Random& random);

/// A table of blocks of `size` positions and the slots of the pools read through it.
struct BlockTable {
  std::int64_t size = 0;
  std::vector<Ints> table;
  std::int64_t slots = 0;
};

/// The state of an index after its builders.
struct IndexPlan {
  Form form = Form::plain;
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  std::int64_t rows = 0;
  std::int64_t context = 0;
  std::int64_t slots = 0;
  std::vector<Ints> pos;
  std::vector<Ints> table;
  Ints row;
  std::vector<BlockTable> blocks;
  std::vector<Ints> lens;  // packed: the lengths of each lane's sequences
  std::int64_t reads = 1;
  std::int64_t window = 0;
  std::int64_t chosen = 0;
  std::vector<std::vector<Ints>> columns;
  bool drafted = false;
  std::vector<Ints> draft_slots;
  std::vector<std::vector<Ints>> sees;
  Json json;

  bool tabled() const { return form != Form::whole && form != Form::packed; }
  bool real(std::int64_t lane, std::int64_t token) const;
  std::int64_t position(std::int64_t lane, std::int64_t token) const;
  const std::vector<Ints>& read_table() const;
  /// The slots of the pool that the index reads.
  std::int64_t pool_slots() const;
  /// C: columns without a draft's tokens.
  std::int64_t width() const;
  std::int64_t stands_at(std::int64_t column) const;
  /// B1, B2, B4 for the columns before a draft's tokens.
  bool sees_column(std::int64_t lane, std::int64_t token, std::int64_t column) const;
  /// B4 for a draft's token columns, B2 for a whole index's.
  bool sees_token(std::int64_t lane, std::int64_t token, std::int64_t other) const;
  /// The slot a token stores at (C3), -1 for none.
  std::int64_t target(std::int64_t lane, std::int64_t token) const;
  /// Slots of the read pool whose old bits may reach a result.
  std::vector<bool> exposed_slots() const;
  /// The caller's duties: no two targets are one slot, and none is named by another row.
  bool duties_kept() const;
};

/// Draws until the duties are kept.
IndexPlan draw_index(Random& random, const IndexFeatures& features);

// The steps of draw_index, in order.
void draw_base(Random& random, const IndexFeatures& features, IndexPlan& plan);
void draw_chain(Random& random, const IndexFeatures& features, IndexPlan& plan);
void draw_tree(Random& random, const IndexFeatures& features, IndexPlan& plan, bool positions);

}  // namespace quire_tests
