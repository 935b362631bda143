// A draft: a tree of guesses at a request's next tokens, computed in one call.
#pragma once

#include <cstdint>
#include <vector>

namespace quire::replay {

/// Nodes of a draft at most.
inline constexpr std::int64_t most_draft_nodes = 6;

/// One token of a draft. Node 0 is the token that is known to come next; every other one goes on from an earlier node.
struct DraftNode {
  std::int64_t parent = -1;
  std::int64_t position = 0;
  std::int64_t guess = 0;  ///< 0: the token that the request really goes on with, else a wrong one
};

/// Two to `most` nodes at positions `position` to `last` (at least one of them after the first). What is guessed, and whether rightly,
/// depends on nothing but the seed, the request and the position.
std::vector<DraftNode> draft_tree(std::uint64_t seed, std::int64_t request, std::int64_t position, std::int64_t last, std::int64_t most);

/// The accepted path: nodes guessed rightly all the way from node 0, in order.
std::vector<std::int64_t> accepted(const std::vector<DraftNode>& tree);

/// Whether node i is j or goes on from it: what `sees` says (A9).
bool descends(const std::vector<DraftNode>& tree, std::int64_t i, std::int64_t j);

}  // namespace quire::replay
