// Growing a draft's tree, and the path that is accepted.
#include "draft.h"

#include "choices.h"

namespace quire::replay {

namespace {

constexpr double rightly = 0.7;

bool has_right_child(const std::vector<DraftNode>& tree, std::int64_t parent) {
  for (const DraftNode& node : tree) {
    if (node.parent == parent && node.guess == 0) return true;
  }
  return false;
}

}  // namespace

std::vector<DraftNode> draft_tree(std::uint64_t seed, std::int64_t request, std::int64_t position, std::int64_t last, std::int64_t most) {
  const std::int64_t place = position * 64;  // trees have fewer nodes
  std::vector<DraftNode> tree = {{-1, position, 0}};
  const std::int64_t nodes = 2 + chosen(seed, Choice::nodes, most - 1, request, place);
  for (std::int64_t n = 1; n < nodes; ++n) {
    std::vector<std::int64_t> parents;
    for (std::int64_t i = 0; i < n; ++i) {
      if (tree[static_cast<std::size_t>(i)].position < last) parents.push_back(i);
    }
    // The youngest half of the time: trees are deep rather than wide.
    const std::int64_t count = static_cast<std::int64_t>(parents.size());
    const std::int64_t choice = chosen(seed, Choice::parent, 2 * count, request, place + n);
    const std::int64_t parent = parents[static_cast<std::size_t>(choice < count ? choice : count - 1)];
    const DraftNode& before = tree[static_cast<std::size_t>(parent)];
    const bool right = before.guess == 0 && !has_right_child(tree, parent) && chance(seed, Choice::guess, request, place + n) < rightly;
    tree.push_back({parent, before.position + 1, right ? 0 : n});
  }
  return tree;
}

std::vector<std::int64_t> accepted(const std::vector<DraftNode>& tree) {
  std::vector<std::int64_t> path = {0};
  for (std::int64_t n = 1; n < static_cast<std::int64_t>(tree.size()); ++n) {
    const DraftNode& node = tree[static_cast<std::size_t>(n)];
    if (node.guess == 0 && node.parent == path.back()) path.push_back(n);
  }
  return path;
}

bool descends(const std::vector<DraftNode>& tree, std::int64_t i, std::int64_t j) {
  while (i > j) i = tree[static_cast<std::size_t>(i)].parent;
  return i == j;
}

}  // namespace quire::replay
