// The arguments of the gated delta rule's three calls, read: operands, and the rows that sequences and tokens read and write (E4-E7, F2).
#pragma once

#include "gdn_rule.h"

#include <vector>

namespace quire::reference {

GdnOperands operands_of(const quire_gdn_prefill_args& args);
GdnOperands operands_of(const quire_gdn_decode_args& args);
GdnOperands operands_of(const quire_gdn_verify_args& args);

/// What a prefill call's sequences read and write.
class PrefillRows {
 public:
  explicit PrefillRows(const quire_gdn_prefill_args& args);

  std::int64_t count() const { return cu_seqlens_.size(0) - 1; }
  std::int64_t first_token(std::int64_t i) const { return cu_seqlens_(i); }
  std::int64_t length(std::int64_t i) const { return cu_seqlens_(i + 1) - cu_seqlens_(i); }
  /// E4: a zero-length sequence writes nothing, except in a final state that the call itself allocates.
  bool is_idle(std::int64_t i) const { return length(i) == 0 && !output_is_fresh_; }
  /// E6: the row a sequence reads, and the row its final state goes to.
  std::int64_t read_row(std::int64_t i) const { return state_indices_.defined() ? state_indices_(i) : i; }
  std::int64_t write_row(std::int64_t i) const {
    if (output_is_fresh_) return i;  // E4: the call's own tensor holds one state per sequence
    return output_state_indices_.defined() ? output_state_indices_(i) : read_row(i);
  }
  /// E7: the tokens of the prefix, the interval (0: none), and the row of the checkpoint taken at absolute position `total`, a multiple of
  /// it.
  std::int64_t prefix(std::int64_t i) const { return prefix_lens_.defined() ? prefix_lens_(i) : 0; }
  std::int64_t every() const { return every_; }
  std::int64_t checkpoint_row(std::int64_t i, std::int64_t total) const {
    const std::int64_t ordinal = checkpoint_cu_starts_(i) + total / every_ - prefix(i) / every_ - 1;
    return checkpoint_state_indices_.defined() ? checkpoint_state_indices_(ordinal) : ordinal;
  }

 private:
  IntegerView cu_seqlens_, state_indices_, output_state_indices_, checkpoint_cu_starts_, checkpoint_state_indices_, prefix_lens_;
  std::int64_t every_;
  bool output_is_fresh_;
};

/// F2: a lane's tree: each real token's parent (-1: it starts from the sequence's row) and number of children, and an order of the real
/// tokens in which parents come first.
struct DraftTree {
  std::vector<std::int64_t> order, parents, children;
};
DraftTree draft_tree(const IndexView& view, std::int64_t b);

}  // namespace quire::reference
