// Generating and checking.
#include "generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

namespace quire::story {

namespace {

struct Story {
  Tokens tokens;
  std::int64_t limit = 0;                     // tokens evaluated at most
  std::optional<std::size_t> second_best_at;  // the place where a fork takes the second best token

  Token choice(const Logits& logits, std::size_t place, const Chooser& chooser) const {
    return second_best_at == place ? best_of(logits).second
                                   : chooser.choose(logits, static_cast<std::int64_t>(place));
  }
  bool has_ended() const {
    return tokens.back() == begin_token || static_cast<std::int64_t>(tokens.size()) > limit;
  }
};

class Writer {
 public:
  Writer(std::string_view layout_name, const Generation& generation, Outcome& outcome)
      : generation_(generation),
        outcome_(outcome),
        setup_{generation.model, generation.on, generation.tokens, generation.fault,
               generation.fault_from},
        layout_(make_layout(layout_name, setup_)) {}

  void write() {
    std::vector<Tokens> next;
    for (const std::int64_t limit : layout_->lengths()) {
      stories_.push_back({generation_.prompt, limit, {}});
      next.push_back(generation_.prompt);
    }
    print(1, generation_.prompt.size());
    const auto begin = std::chrono::steady_clock::now();
    const auto is_over = [](const Tokens& tokens) { return tokens.empty(); };
    while (!std::all_of(next.begin(), next.end(), is_over)) {
      if (generation_.interrupted && generation_.interrupted()) {
        outcome_.interrupted = true;
        break;
      }
      next = choose(layout_->feed(next), next);
      outcome_.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      if (generation_.progress)
        generation_.progress(static_cast<std::int64_t>(stories_[0].tokens.size()) - 1,
                             outcome_.seconds);
    }
    outcome_.counts = layout_->counts();
    for (const Story& story : stories_) outcome_.stories.push_back(story.tokens);
  }

  // Each story once more, whole, without a cache: every token after the prompt is the choice at its
  // place.
  void check() {
    for (std::size_t s = 0; s < stories_.size() && outcome_.mismatch.empty(); ++s) {
      compare_with_first(s);
      if (outcome_.mismatch.empty()) compare_with_whole(s);
    }
  }

 private:
  std::vector<Tokens> choose(const std::vector<Logits>& logits, const std::vector<Tokens>& fed) {
    while (stories_.size() < logits.size()) {  // forks, before story 0 goes on
      stories_.push_back(stories_[0]);
      if (layout_->branches_part()) stories_.back().second_best_at = stories_[0].tokens.size();
    }
    std::vector<Tokens> next(stories_.size());
    for (std::size_t s = 0; s < stories_.size(); ++s) {
      if (s < fed.size() && fed[s].empty()) continue;
      Story& story = stories_[s];
      if (s == 0) note_gap(best_of(logits[s]).gap);
      story.tokens.push_back(story.choice(logits[s], story.tokens.size(), generation_.chooser));
      ++outcome_.generated;
      if (s == 0) print(story.tokens.size() - 1, story.tokens.size());
      if (!story.has_ended()) next[s] = {story.tokens.back()};
    }
    return next;
  }

  void note_gap(float gap) {
    any_nan_ = any_nan_ || std::isnan(gap);
    outcome_.smallest_gap =
        any_nan_ ? std::nullopt : std::optional(std::min(gap, outcome_.smallest_gap.value_or(gap)));
  }

  void print(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const Tokens& tokens = stories_[0].tokens;
      if (tokens[i] == begin_token) return;
      const std::string text = generation_.tokenizer->decode(tokens[i - 1], tokens[i]);
      outcome_.text += text;
      if (generation_.print) generation_.print(text);
    }
  }

  void compare_with_first(std::size_t s) {
    const Tokens &first = stories_[0].tokens, &other = stories_[s].tokens;
    const std::size_t common =
        std::min({first.size(), other.size(), stories_[s].second_best_at.value_or(other.size())});
    const auto [differs, in_other] = std::mismatch(
        first.begin(), first.begin() + static_cast<std::ptrdiff_t>(common), other.begin());
    if (differs != first.begin() + static_cast<std::ptrdiff_t>(common)) {
      note_mismatch(s, differs - first.begin(), *in_other, *differs, "the first story has");
    }
  }

  void compare_with_whole(std::size_t s) {
    const Story& story = stories_[s];
    const auto count = static_cast<std::int64_t>(story.tokens.size()) - 1;
    const auto prompt = static_cast<std::int64_t>(generation_.prompt.size());
    if (count < prompt) return;
    std::vector<std::int64_t> places(static_cast<std::size_t>(count - prompt + 1));
    std::iota(places.begin(), places.end(), prompt - 1);
    Caches none;
    const std::vector<Logits> logits = generation_.model->evaluate(
        Index::whole(1, count), std::span(story.tokens).first(static_cast<std::size_t>(count)),
        none, places, generation_.on);
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const std::size_t place = static_cast<std::size_t>(prompt) + i;
      const Token expected = story.choice(logits[i], place, generation_.chooser);
      if (expected != story.tokens[place]) {
        return note_mismatch(s, static_cast<std::ptrdiff_t>(place), story.tokens[place], expected,
                             "the story evaluated whole goes on with");
      }
    }
  }

  void note_mismatch(std::size_t s, std::ptrdiff_t place, Token token, Token expected,
                     std::string_view by) {
    const auto quoted = [&](Token one) { return generation_.tokenizer->decode(0, one); };
    outcome_.mismatch_at = place;
    outcome_.mismatch = fmt::format("story {}: token {} is \"{}\", {} \"{}\"", s + 1, place,
                                    quoted(token), by, quoted(expected));
  }

  const Generation& generation_;
  Outcome& outcome_;
  Setup setup_;
  std::unique_ptr<Layout> layout_;
  std::vector<Story> stories_;
  bool any_nan_ = false;
};

}  // namespace

Outcome generate(std::string_view layout_name, const Generation& generation) {
  Outcome outcome;
  outcome.layout = layout_name;
  if (generation.tokens == 0) return outcome;
  Writer writer(layout_name, generation, outcome);
  writer.write();
  if (!outcome.interrupted) writer.check();
  return outcome;
}

}  // namespace quire::story
