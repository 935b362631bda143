// quire story: the readers, the layouts, the faults and the report.
#include "story/generate.h"
#include "story/guess.h"
#include "story/report.h"
#include "story/slots.h"
#include "story/story.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace {

using namespace quire;
using namespace quire::story;
using Bytes = std::vector<std::byte>;

template <typename T>
void put(Bytes& bytes, T value) {
  const auto* begin = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), begin, begin + sizeof value);
}

// Two layers, four query heads on two kv heads, 300 tokens: <unk>, <s>, </s>, 256 bytes, then
// pieces.
constexpr std::int64_t vocabulary = 300;
constexpr std::array<std::int32_t, 7> small_header{16, 24, 2, 4, 2, vocabulary, 64};

Bytes checkpoint(std::array<std::int32_t, 7> header = small_header) {
  Bytes bytes;
  for (const std::int32_t number : header) put(bytes, number);
  const auto floats = (checkpoint_bytes(parse_header(bytes)) - checkpoint_header_bytes) / 4;
  for (std::uint64_t i = 0; i < floats; ++i) {
    const auto words = philox({static_cast<std::uint32_t>(i), 0, 0, 0}, 11);
    put(bytes, static_cast<float>(words[0] >> 8) * 0x1p-23F - 1.0F);
  }
  return bytes;
}

std::string piece(std::int64_t token) {
  static const std::string pieces[] = {" ", "a", "b", "ab", " a", " ab", "aba", "\n", "\x1b[2J"};
  char byte[8];
  if (token < 3) return token == 0 ? "<unk>" : token == 1 ? "<s>" : "</s>";
  if (token < 259)
    return std::snprintf(byte, sizeof byte, "<0x%02X>", static_cast<unsigned>(token - 3)), byte;
  const auto number = static_cast<std::size_t>(token - 259);
  return number < std::size(pieces) ? pieces[number] : "word" + std::to_string(token) + " ";
}

Bytes tokenizer_file() {
  Bytes bytes;
  put(bytes, std::int32_t{16});
  for (std::int64_t token = 0; token < vocabulary; ++token) {
    const std::string text = piece(token);
    put(bytes, static_cast<float>(token));
    put(bytes, static_cast<std::int32_t>(text.size()));
    for (const char letter : text) put(bytes, letter);
  }
  return bytes;
}

std::string problem(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()).find('\n') == std::string::npos);
    return error.what();
  }
  return "";
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The small model's stories.
struct Small {
  Model model = Model::parse(checkpoint());
  Tokenizer tokenizer = Tokenizer::parse(tokenizer_file(), vocabulary);

  Generation generation(std::int64_t tokens, std::string_view prompt = "",
                        double temperature = 0) const {
    Generation made;
    made.model = &model;
    made.tokenizer = &tokenizer;
    made.on.backend = &backend("reference");
    made.chooser = Chooser(temperature, 5);
    made.prompt = tokenizer.encode(prompt, tokens);
    made.tokens = tokens;
    return made;
  }
};

// `shared/data` in some folder above this one, or nothing.
std::filesystem::path data_folder() {
  for (std::filesystem::path folder = std::filesystem::current_path();;
       folder = folder.parent_path()) {
    if (std::filesystem::exists(folder / "shared/data/stories260K.bin"))
      return folder / "shared/data";
    if (folder == folder.parent_path()) return {};
  }
}

std::string read(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a checkpoint is read only where it is exactly one") {
  const Bytes good = checkpoint();
  CHECK(Model::parse(good).size().head_size() == 4);
  for (std::size_t size = 0; size < good.size(); size += size < 40 ? 1 : 997) {
    CHECK(contains(problem([&] { Model::parse(std::span(good).first(size)); }), "truncated"));
  }
  Bytes longer = good;
  longer.push_back(std::byte{0});
  CHECK(contains(problem([&] { Model::parse(longer); }),
                 "too long: " + std::to_string(longer.size()) + " bytes"));
  auto own_classifier = small_header;
  own_classifier[5] = -own_classifier[5];
  CHECK(contains(problem([&] {
                   Model::parse([&] {
                     Bytes bytes = good;
                     std::memcpy(bytes.data(), own_classifier.data(), sizeof own_classifier);
                     return bytes;
                   }());
                 }),
                 "truncated"));
  CHECK(Model::parse(checkpoint(own_classifier)).size().own_classifier);
}

TEST_CASE("headers that no model has are refused before anything is allocated") {
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max(),
                         least = std::numeric_limits<std::int32_t>::min();
  const auto refused = [](std::size_t field, std::int32_t value) {
    Bytes bytes = checkpoint();
    std::memcpy(bytes.data() + 4 * field, &value, sizeof value);
    return problem([&] { Model::parse(bytes); });
  };
  for (std::size_t field = 0; field < 7; ++field) {
    for (const std::int32_t value : {0, least, most}) CHECK_FALSE(refused(field, value).empty());
    if (field != 5) CHECK(contains(refused(field, -1), "allowed: 1 or more"));
  }
  CHECK(contains(refused(0, 18), "no multiple of n_heads"));
  CHECK(contains(refused(0, 12), "an even size"));
  CHECK(contains(refused(4, 3), "no multiple of n_kv_heads"));
  CHECK(contains(refused(5, 2), "3 or more tokens"));
  CHECK(contains(refused(0, 0x616b3432), "newer llama2.c format"));
  Bytes huge;
  for (const std::int32_t number : {most - 1, most, most, 1, 1, most, most}) put(huge, number);
  CHECK(contains(problem([&] { Model::parse(huge); }), "more than 2^62 bytes"));
}

TEST_CASE("weights may be NaN: the first token is chosen and no gap is reported") {
  Bytes bytes = checkpoint();
  for (std::size_t i = checkpoint_header_bytes; i < bytes.size(); ++i) bytes[i] = std::byte{0xff};
  Small small;
  small.model = Model::parse(bytes);
  const Outcome outcome = generate("rows", small.generation(4));
  CHECK(outcome.text == "<unk><unk><unk><unk>");
  CHECK_FALSE(outcome.smallest_gap.has_value());
}

TEST_CASE("a tokenizer is read only where it is exactly one") {
  const Bytes good = tokenizer_file();
  Tokenizer::parse(good, vocabulary);
  for (std::size_t size = 0; size < good.size(); ++size) {
    CHECK(contains(problem([&] { Tokenizer::parse(std::span(good).first(size), vocabulary); }),
                   "truncated"));
  }
  CHECK(contains(problem([&] { Tokenizer::parse(good, vocabulary - 1); }), "too long"));
  CHECK(contains(problem([&] { Tokenizer::parse(good, std::int64_t{1} << 31); }), "truncated"));
  for (const std::int32_t length : {-1, 17, std::numeric_limits<std::int32_t>::max()}) {
    Bytes bytes = good;
    std::memcpy(bytes.data() + 8, &length, sizeof length);
    CHECK(contains(problem([&] { Tokenizer::parse(bytes, vocabulary); }), "allowed: 0 to 16"));
  }
}

TEST_CASE("text to tokens and back") {
  const Tokenizer tokenizer = Tokenizer::parse(tokenizer_file(), vocabulary);
  using Pieces = std::vector<Token>;
  CHECK(tokenizer.encode("", 9) == Pieces{1});
  CHECK(tokenizer.encode("a", 9) == Pieces{1, 263});  // " a"
  CHECK(tokenizer.encode("ab", 9) ==
        Pieces{1, 264});  // " a" has a higher score than "ab", and " ab" a higher one still
  CHECK(tokenizer.encode("z\xc3\xa9", 9) == Pieces{1, 259, 3 + 'z', 3 + 0xc3, 3 + 0xa9});
  CHECK(contains(problem([&] { tokenizer.encode(std::string(1000, 'a'), 9); }), "1000 bytes"));
  CHECK(tokenizer.decode(1, 263) == "a");
  CHECK(tokenizer.decode(263, 263) == " a");
  CHECK(tokenizer.decode(0, 3 + 'z') == "z");
  CHECK(tokenizer.decode(0, 3 + '\n') == "\n");
  CHECK(tokenizer.decode(0, 3 + 7).empty());
  CHECK(tokenizer.decode(0, 267) == "[2J");  // no command for a terminal
}

TEST_CASE("choices") {
  // Known answers of Random123.
  CHECK(philox({0, 0, 0, 0}, 0) ==
        std::array<std::uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0U, ~0U, ~0U, ~0U}, ~std::uint64_t{0}) ==
        std::array<std::uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  const Logits logits{1, 4, 3.5F, -2};
  const Best best = best_of(logits);
  CHECK(best.first == 1);
  CHECK(best.second == 2);
  CHECK(best.gap == 0.5F);
  CHECK(best_of({3, 3}).gap == 0);
  CHECK(Chooser(0, 1).choose(logits, 3) == 1);
  std::array<int, 4> drawn{};
  for (std::int64_t place = 0; place < 4000; ++place)
    ++drawn[static_cast<std::size_t>(Chooser(1, 9).choose(logits, place))];
  CHECK(drawn[1] > 2200);  // of 0.600
  CHECK(drawn[1] < 2600);
  CHECK(drawn[2] > 1300);  // of 0.364
  CHECK(Chooser(1, 9).choose(logits, 17) == Chooser(1, 9).choose(logits, 17));
}

TEST_CASE("slots and pages in use and shared") {
  Slots slots(40);
  std::vector<std::int64_t> taken;
  for (int i = 0; i < 20; ++i) taken.push_back(slots.take());
  CHECK(taken.front() == 0);
  CHECK(slots.pages_used().now == 2);
  slots.share(3);
  slots.share(3);
  CHECK(slots.shared().now == 1);
  for (int i = 0; i < 3; ++i) slots.release(3);
  CHECK(slots.used().now == 19);
  CHECK(slots.shared().now == 0);
  CHECK(slots.pages_shared().most == 1);
  CHECK(slots.take() == 3);
  for (const std::int64_t slot : taken) slots.release(slot);
  CHECK(slots.used().now == 0);
  CHECK(slots.used().most == 20);
  CHECK(slots.pages_used().now == 0);
  Slots pages = Slots::shuffled_pages(8, 1);
  bool in_order = true;
  for (std::int64_t i = 0; i < 8 * page_size; ++i) {
    const std::int64_t slot = pages.take();
    CHECK(slot % page_size == i % page_size);
    in_order = in_order && slot == i;
  }
  CHECK_FALSE(in_order);
}

TEST_CASE("guesses") {
  const std::vector<Token> told{5, 6, 7, 8, 9, 5, 6, 7};
  CHECK(look_up(told, 2) == Tokens{8, 9});
  CHECK(look_up(told, 9) == Tokens{8, 9, 5, 6, 7});
  CHECK(look_up(std::vector<Token>{4, 4}, 3) == Tokens{4});
  CHECK(look_up(std::vector<Token>{4, 5}, 3).empty());
  CHECK(look_up(told, 0).empty());
  for (Token token = 0; token < 3; ++token) CHECK(other_than(token, 3) != token);
}

TEST_CASE("every layout tells the same story") {
  const Small small;
  for (const double temperature : {0.0, 0.9}) {
    for (const auto& [tokens, prompt] : {std::pair<std::int64_t, const char*>{1, ""},
                                         {2, ""},
                                         {3, "a"},
                                         {17, ""},
                                         {40, "ab abba"},
                                         {64, ""},
                                         {64, "a a ab word"}}) {
      CAPTURE(tokens);
      const Generation generation = small.generation(tokens, prompt, temperature);
      const Outcome first = generate("rows", generation);
      CHECK(static_cast<std::int64_t>(first.stories.at(0).size()) <= tokens + 1);
      for (const std::string_view name : layout_names()) {
        CAPTURE(name);
        const Outcome outcome = generate(name, generation);
        CHECK(outcome.mismatch == "");
        CHECK(outcome.stories.at(0) == first.stories.at(0));
        CHECK(outcome.text == first.text);
        CHECK(outcome.smallest_gap ==
              first.smallest_gap);  // the reference's logits are equal to the last bit
        CHECK(outcome.counts.findings == 0);
      }
    }
  }
}

TEST_CASE("the layouts are what they say") {
  const Small small;
  const Generation generation = small.generation(64);
  const auto counts = [&](std::string_view name) { return generate(name, generation).counts; };
  CHECK(counts("rows").slots_used == 64);
  CHECK(counts("paged").pages_used == 4);
  CHECK(counts("chunked").calls > 64);
  CHECK(counts("shared").slots_shared == 24);
  CHECK(counts("shared").pages_shared == 2);
  CHECK(counts("forked").slots_shared == 32);
  CHECK(counts("forked").forks == 1);
  CHECK(counts("lanes").lanes == 3);
  CHECK(counts("draft").drafts_rejected > 0);
  CHECK(counts("select").columns_selected == 64 * 65 / 2);
  const Outcome packed = generate("packed", generation);
  CHECK(packed.counts.slots_used == 0);
  CHECK(packed.stories.size() == 3);
  const Outcome forked = generate("forked", generation);
  CHECK(forked.stories.at(0) != forked.stories.at(1));
  const Outcome shared = generate("shared", generation);
  CHECK(shared.stories.at(0) == shared.stories.at(1));
}

TEST_CASE("an interrupt ends a story at its next token") {
  const Small small;
  Generation generation = small.generation(64);
  int asked = 0;
  generation.interrupted = [&] { return ++asked > 5; };
  const Outcome outcome = generate("rows", generation);
  CHECK(outcome.interrupted);
  CHECK(outcome.generated == 5);
}

TEST_CASE("bad options and files give one line and exit status 2") {
  CHECK(contains(problem([] { fault_named("typo"); }), "hole, swap, future, stale"));
  CHECK(contains(problem([] { make_layout("typo", {}); }), "rows, paged"));
  StoryOptions options;
  options.model = "no/such/model.bin";
  CHECK(tools::run_story(options) == 2);
  CHECK(contains(problem([] { Model::load("no/such/model.bin"); }), "--model"));
  CHECK(contains(problem([] { Model::load("."); }), "not a regular file"));
  CHECK(contains(problem([] { Tokenizer::load("no/such/tokenizer.bin", 3); }), "--tokenizer"));
  options.layout = "packed";
  options.fault = "hole";
  CHECK(tools::run_story(options) == 2);
}

TEST_CASE("the published story") {
  const std::filesystem::path folder = data_folder();
  if (folder.empty()) {
    std::puts("SKIPPED the published story: no shared/data above this folder");  // tools/test.sh counts it
    return;
  }
  const std::string published = read(folder / "story.txt");
  const Model model = Model::load((folder / "stories260K.bin").string());
  const Tokenizer tokenizer =
      Tokenizer::load((folder / "tok512.bin").string(), model.size().vocabulary);
  Generation generation;
  generation.model = &model;
  generation.tokenizer = &tokenizer;
  generation.on.backend = &backend("reference");
  generation.prompt = tokenizer.encode("", 256);
  generation.tokens = 256;
  std::vector<Outcome> outcomes;
  for (const std::string_view name : layout_names()) {
    CAPTURE(name);
    outcomes.push_back(generate(name, generation));
    CHECK(outcomes.back().text + "\n" == published);
    CHECK(outcomes.back().mismatch == "");
  }
  const auto report = nlohmann::json::parse(json_report({}, "reference", outcomes, 0));
  for (const auto& layout : report["layouts"]) {
    CHECK(layout["smallest_gap"] == report["layouts"][0]["smallest_gap"]);
    CHECK((layout["layout"] == "draft") == (layout["drafts_accepted"] > 0));
    CHECK((layout["layout"] == "draft") == (layout["drafts_rejected"] > 0));
  }
  generation.tokens = 128;
  for (const std::string_view fault : {"hole", "swap", "future", "stale"}) {
    for (const std::string_view name : layout_names()) {
      if (!has_table(name)) continue;
      CAPTURE(fault);
      CAPTURE(name);
      generation.fault = fault_named(fault);
      generation.fault_from = 21;
      const Outcome outcome = generate(name, generation);
      CHECK_FALSE(published.starts_with(outcome.text));
      CHECK(outcome.mismatch_at.value_or(0) >= 20);
    }
  }
}
