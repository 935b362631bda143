// The arguments of the gated delta rule's three calls, read (E4-E7, F2).
#include "gdn_calls.h"

#include <algorithm>

namespace quire::reference {

namespace {

// E1's fields, which the three calls share.
template <typename Args>
GdnOperands common(const Args& args, int lead) {
  GdnOperands operands;
  operands.q = RowView(args.q);
  operands.k = RowView(args.k);
  operands.v = RowView(args.v);
  operands.g = RowView(args.g);
  operands.beta = RowView(args.beta);
  operands.output = RowView(args.output);
  operands.scale = args.scale;
  operands.use_qk_l2norm = args.use_qk_l2norm != 0;
  operands.lead = lead;
  return operands;
}

}  // namespace

GdnOperands operands_of(const quire_gdn_prefill_args& args) { return common(args, 1); }

GdnOperands operands_of(const quire_gdn_decode_args& args) {
  GdnOperands operands = common(args, 2);
  operands.A_log = RowView(args.A_log);
  operands.a = RowView(args.a);
  operands.dt_bias = RowView(args.dt_bias);
  operands.b = RowView(args.b);
  return operands;
}

GdnOperands operands_of(const quire_gdn_verify_args& args) { return common(args, 2); }

PrefillRows::PrefillRows(const quire_gdn_prefill_args& args)
    : cu_seqlens_(args.cu_seqlens),
      state_indices_(args.state_indices),
      output_state_indices_(args.output_state_indices),
      checkpoint_cu_starts_(args.checkpoint_cu_starts),
      checkpoint_state_indices_(args.checkpoint_state_indices),
      prefix_lens_(args.prefix_lens),
      every_(args.checkpoint_every_n_tokens),
      output_is_fresh_(args.output_state_is_fresh != 0) {}

DraftTree draft_tree(const IndexView& view, std::int64_t b) {
  DraftTree tree;
  tree.parents.assign(static_cast<std::size_t>(view.seq()), -1);
  tree.children.assign(static_cast<std::size_t>(view.seq()), 0);
  for (std::int64_t i = 0; i < view.seq(); ++i) {
    if (!view.is_real(b, i)) continue;
    tree.order.push_back(i);
    std::int64_t& parent = tree.parents[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < view.seq(); ++j) {
      const std::int64_t p = view.position(b, j);
      if (p < 0 || p >= view.position(b, i) || !view.draft_sees(b, i, j)) continue;
      if (parent < 0 || p > view.position(b, parent)) parent = j;
    }
    if (parent >= 0) ++tree.children[static_cast<std::size_t>(parent)];
  }
  std::stable_sort(tree.order.begin(), tree.order.end(),
                   [&](std::int64_t i, std::int64_t j) { return view.position(b, i) < view.position(b, j); });
  return tree;
}

}  // namespace quire::reference
