// The layout without a cache: packed. Several stories of different lengths are evaluated whole,
// packed into lanes.
#include "guess.h"
#include "tabled.h"

#include <algorithm>

namespace quire::story {

namespace {

/// Each story is evaluated with a few guessed tokens after it, and the next token is the choice at
/// its place; where a guess is that choice, the place after it is known too.
class Packed final : public Layout {
 public:
  explicit Packed(const Setup& setup) : Layout(setup) {
    for (const std::int64_t limit : lengths()) stories_.push_back({limit, {}, {}, 0, {}});
  }

  std::vector<std::int64_t> lengths() const override {
    const std::int64_t most = setup_.context;
    return {most, std::max<std::int64_t>(1, most / 3), std::max<std::int64_t>(1, most / 4)};
  }

  std::vector<Logits> feed(const std::vector<Tokens>& next) override {
    bool known = true;
    for (std::size_t s = 0; s < next.size(); ++s) {
      for (const Token token : next[s]) known = stories_[s].add(token) && known;
    }
    std::vector<Story*> fed;
    for (std::size_t s = 0; s < next.size(); ++s) {
      if (!next[s].empty()) fed.push_back(&stories_[s]);
    }
    if (!known) evaluate_whole(fed);
    std::vector<Logits> logits(next.size());
    for (std::size_t s = 0; s < next.size(); ++s) {
      if (!next[s].empty())
        logits[s] = stories_[s].known[stories_[s].tokens.size() - stories_[s].known_from];
    }
    return logits;
  }

 private:
  struct Story {
    std::int64_t limit = 0;
    Tokens tokens;
    Tokens evaluated;            // the tokens and guesses of the last call
    std::size_t known_from = 0;  // known[i]: the logits after known_from + i of them
    std::vector<Logits> known;

    /// Whether the logits after the token are known.
    bool add(Token token) {
      tokens.push_back(token);
      if (tokens.size() <= evaluated.size() && evaluated[tokens.size() - 1] == token)
        return tokens.size() >= known_from;
      evaluated.clear();
      return false;
    }
  };

  void evaluate_whole(std::span<Story* const> stories) {
    for (Story* story : stories) {
      story->evaluated = story->tokens;
      const std::int64_t left = story->limit - static_cast<std::int64_t>(story->tokens.size());
      const Tokens guesses = look_up(story->tokens, std::min(guesses_at_most, left));
      story->evaluated.insert(story->evaluated.end(), guesses.begin(), guesses.end());
      story->known_from = story->tokens.size();
    }
    // The first story has a lane, the others share one, one after another.
    std::vector<std::vector<Story*>> lanes{{stories.front()}};
    if (stories.size() > 1) lanes.emplace_back(stories.begin() + 1, stories.end());
    const auto length_of = [](const std::vector<Story*>& lane) {
      std::size_t length = 0;
      for (const Story* story : lane) length += story->evaluated.size();
      return length;
    };
    const std::size_t seq = std::max(length_of(lanes.front()), length_of(lanes.back()));
    std::vector<std::vector<std::int64_t>> lens;
    Tokens tokens;
    std::vector<std::int64_t> places;
    for (const std::vector<Story*>& lane : lanes) {
      lens.emplace_back();
      tokens.resize(lens.size() * seq - length_of(lane));  // padding on the left
      for (const Story* story : lane) {
        lens.back().push_back(static_cast<std::int64_t>(story->evaluated.size()));
        for (std::size_t i = story->known_from; i <= story->evaluated.size(); ++i) {
          places.push_back(static_cast<std::int64_t>(tokens.size() + i - 1));
        }
        tokens.insert(tokens.end(), story->evaluated.begin(), story->evaluated.end());
      }
    }
    std::vector<Logits> logits =
        evaluate(Index::packed(static_cast<std::int64_t>(seq), lens), tokens, places);
    auto given = logits.begin();
    for (Story* story : stories) {
      const auto count =
          static_cast<std::ptrdiff_t>(story->evaluated.size() - story->known_from + 1);
      story->known.assign(std::make_move_iterator(given), std::make_move_iterator(given + count));
      given += count;
    }
  }

  static constexpr std::int64_t guesses_at_most = 6;
  std::vector<Story> stories_;
};

}  // namespace

std::unique_ptr<Layout> make_packed(const Setup& setup) { return std::make_unique<Packed>(setup); }

}  // namespace quire::story
