// The layout of guessed trees: draft. One call verifies a tree; keeping a path is naming its slots
// in the table (A9, C3).
#include "guess.h"
#include "tabled.h"

#include <algorithm>
#include <utility>

namespace quire::story {

namespace {

/// The tree's root is the token given; its chain of guesses comes from prompt look-up, and beside
/// it stand guesses wrong on purpose.
class Drafts final : public Tabled {
 public:
  explicit Drafts(const Setup& setup) : Tabled(setup, Slots(setup.context + 2 * tokens_at_most)) {}

  std::vector<Logits> feed(const std::vector<Tokens>& next) override {
    const Tokens& tokens = next[0];
    if (const std::size_t child = tokens.size() == 1 ? child_of(last_kept_, tokens[0]) : 0;
        child != 0) {
      last_kept_ = child;
      ++counts_.drafts_accepted;
      return {tree_[child].logits};
    }
    keep();
    if (tokens.size() > 1) call({{append(0, std::span(tokens).first(tokens.size() - 1))}});
    grow(tokens.back());
    verify();
    return {tree_[0].logits};
  }

  Counts counts() const override {
    Counts counts = Tabled::counts();
    counts.drafts_rejected = guessed_ - counts.drafts_accepted;
    return counts;
  }

 private:
  struct Node {
    Token token = 0;
    std::size_t parent = 0;  // of the root: itself
    std::int64_t position = 0;
    std::int64_t slot = -1;
    Logits logits;
  };
  static constexpr std::int64_t chain = 4;
  static constexpr std::int64_t tokens_at_most = 2 + 2 * chain;

  /// 0 where there is none.
  std::size_t child_of(std::size_t parent, Token token) const {
    for (std::size_t i = 1; i < tree_.size(); ++i) {
      if (tree_[i].parent == parent && tree_[i].token == token) return i;
    }
    return 0;
  }

  bool is_kept(std::size_t node) const {
    std::size_t kept = last_kept_;
    while (kept != node && kept != 0) kept = tree_[kept].parent;
    return kept == node;
  }

  bool plants(Fault fault) const {
    return setup_.fault == fault && !tree_.empty() && tree_[0].position >= setup_.fault_from;
  }

  /// Names the slots of the kept path in the table and gives the others back.
  void keep() {
    if (plants(Fault::swap)) {  // the root's slot for that of a rejected token
      std::size_t rejected = 1;
      while (rejected < tree_.size() && is_kept(rejected)) ++rejected;
      if (rejected < tree_.size()) std::swap(tree_[0].slot, tree_[rejected].slot);
    }
    for (std::size_t i = 0; i < tree_.size(); ++i) {
      if (is_kept(i)) {
        sequences_[0].tokens.push_back(tree_[i].token);
        sequences_[0].table[static_cast<std::size_t>(tree_[i].position)] = tree_[i].slot;
      } else {
        slots_.release(tree_[i].slot);
      }
    }
    tree_.clear();
    last_kept_ = 0;
  }

  std::size_t add(Token token, std::size_t parent) {
    const std::int64_t position = tree_.empty() ? length(0) : tree_[parent].position + 1;
    tree_.push_back({token, parent, position, slots_.take(), {}});
    return tree_.size() - 1;
  }

  void grow(Token root) {
    add(root, 0);
    Tokens story = sequences_[0].tokens;
    story.push_back(root);
    const std::int64_t vocabulary = setup_.model->size().vocabulary;
    const std::int64_t room = std::min(
        chain, setup_.context - 1 - tree_[0].position);  // past the context no guess stands
    const Tokens guesses = look_up(story, room);
    if (room > 0) {  // a wrong branch of two tokens beside the whole chain
      const Token beside = guesses.empty() ? root : guesses[0];
      const std::size_t wrong = add(other_than(beside, vocabulary), 0);
      if (room > 1) add(beside, wrong);
    }
    std::size_t parent = 0;
    for (const Token guess : guesses) {
      if (parent != 0) add(other_than(guess, vocabulary), parent);
      parent = add(guess, parent);
    }
    guessed_ += static_cast<std::int64_t>(tree_.size()) - 1;
  }

  void verify() {
    const auto count = static_cast<std::int64_t>(tree_.size());
    Lane lane;
    Tensor slots = Tensor::empty(DType::i64, {1, count}),
           sees = Tensor::zeros(DType::boolean, {1, count, count});
    std::vector<std::int64_t> places;
    const auto see = [&](std::size_t token, std::size_t seen) {
      sees.data<std::uint8_t>()[token * tree_.size() + seen] = 1;
    };
    for (std::size_t i = 0; i < tree_.size(); ++i) {
      lane.positions.push_back(tree_[i].position);
      lane.tokens.push_back(tree_[i].token);
      slots.data<std::int64_t>()[i] = tree_[i].slot;
      places.push_back(static_cast<std::int64_t>(i));
      see(i, 0);
      for (std::size_t seen = i; seen != 0; seen = tree_[seen].parent) see(i, seen);
    }
    if (plants(Fault::future) && count > 1) {  // the root sees a guess that stands after it
      see(0, 1);
      lane.positions[1] = lane.positions[0];
    }
    std::vector<Logits> logits =
        evaluate(index_of({{lane}}).draft(std::move(slots), std::move(sees)), lane.tokens, places);
    for (std::size_t i = 0; i < tree_.size(); ++i) tree_[i].logits = std::move(logits[i]);
  }

  std::vector<Node> tree_;
  std::size_t last_kept_ = 0;
  std::int64_t guessed_ = 0;
};

}  // namespace

std::unique_ptr<Layout> make_draft(const Setup& setup) { return std::make_unique<Drafts>(setup); }

}  // namespace quire::story
