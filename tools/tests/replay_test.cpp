// quire replay: the trace's reader, the page allocator, drafts, the engine, its faults and its case files.
#include "replay_helpers.h"

#include "replay/activations.h"
#include "replay/draft.h"
#include "replay/pages.h"
#include "replay/replay.h"

#include "case/evaluate.h"

#include <quire/ops.h>
#include <quire/registry.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace {

using namespace quire;
using namespace quire::replay;
using namespace quire::replay::testing;

TEST_CASE("a trace is read as it stands") {
  const File file(line(5, 1300, 10, {7, 8, 9}) + "\n" + line(2, 512, 1, {7}) + line(9, 1, 0, {}));
  const Trace trace = read_trace(file.path(), 0, 0, 1);
  REQUIRE(trace.requests.size() == 3);
  CHECK(trace.block_size == 512);
  CHECK(trace.requests[0].number == 1);  // in order of arrival
  const Request& request = trace.requests[1];
  CHECK(request.number == 0);
  CHECK(request.tokens() == 1309);  // the last token put out is never read
  CHECK(trace.tokens() == 1309 + 512 + 1);
  CHECK(trace.longest() == 1309);
  const TokenSource inside = request.source(513), own = request.source(1300);
  CHECK(inside.stream == 8);
  CHECK(inside.offset == 1);
  CHECK_FALSE(inside.is_own);
  CHECK(own.is_own);
  CHECK(own.stream == 0);
  CHECK(own.offset == 1300);
  CHECK(trace.requests[2].source(0).is_own);  // no id: the request's own
}

TEST_CASE("a scale shrinks blocks and keeps what is shared") {
  const File file(line(0, 1300, 100, {7, 8, 9}));
  const Request eighth = read_trace(file.path(), 0, 0, 0.125).requests[0];
  CHECK(eighth.block_size == 64);
  CHECK(eighth.prompt == 2 * 64 + 35);  // ceil(276 / 8)
  CHECK(eighth.output == 13);           // ceil(100 / 8)
  CHECK(eighth.source(64).stream == 8);
  const Request half = read_trace(file.path(), 0, 0, 0.5).requests[0];
  CHECK(half.block_size == 256);
  CHECK(half.prompt == 650);
  // Below an eighth blocks are dropped: 3 * 0.4 is nearest to 1.
  const Request less = read_trace(file.path(), 0, 0, 0.05).requests[0];
  CHECK(less.block_size == 64);
  CHECK(less.prompt == 64);
  CHECK(less.blocks == std::vector<std::int64_t>{7});
}

TEST_CASE("a trace that can't be used is named by line and field") {
  const auto refused = [](const std::string& text, std::int64_t start = 0) {
    const File file(text);
    return refusal([&] { read_trace(file.path(), start, 0, 1); });
  };
  const std::string good = line(0, 600, 5, {1, 2});
  CHECK(has(refused(good + "{"), "trace.jsonl:2: {; allowed: a JSON object"));
  CHECK(has(refused(good + "[1]\n"), ":2: [1]"));
  CHECK(has(refused(R"({"timestamp":0,"output_length":1,"hash_ids":[]})"), ":1: input_length: nothing"));
  CHECK(has(refused(line(0, 0, 5, {})), "input_length: 0; allowed: a whole number from 1"));
  CHECK(has(refused(line(0, 5, -1, {})), "output_length: -1"));
  CHECK(has(refused(line(-3, 5, 1, {})), "timestamp: -3; allowed: milliseconds"));
  CHECK(has(refused(line(0, 600, 5, {1, 2, 3})), "hash_ids: [1,2,3]; allowed: at most 2 block ids"));
  CHECK(has(refused(line(0, 600, 5, {1, -2})), "hash_ids: [1,-2]"));
  CHECK(has(refused(R"({"timestamp":0,"input_length":1e300,"output_length":1,"hash_ids":[]})"), "input_length: 1e+300"));
  CHECK(has(refused(R"({"timestamp":0,"input_length":"x","output_length":1,"hash_ids":[]})"), "input_length: \"x\""));
  CHECK(has(refused(R"({"timestamp":0,"input_length":9,"output_length":1,"hash_ids":[18446744073709551615]})"), "hash_ids"));
  CHECK(has(refused(R"({"timestamp":0.5,"input_length":1.5,"output_length":1,"hash_ids":[]})"), "input_length: 1.5; allowed: a whole number"));
  CHECK(has(refused(""), "without a request"));
  CHECK(has(refused(good, 1), "--start: 1; allowed: 0 to 0"));
  CHECK(has(refusal([] { read_trace("/nowhere/at/all", 0, 0, 1); }), "can't be opened"));
}

TEST_CASE("pages are shared, held, evicted and reused") {
  PageCache pages(3, 64);
  CHECK(pages.available() == 3);
  const PageId first = pages.take(), second = pages.take();
  CHECK(pages.share(first, {0, {7}}));
  CHECK(pages.share(second, {pages.number(first), {8}}));
  CHECK_FALSE(pages.share(second, {0, {7}}));  // the key has a page
  CHECK(pages.find({0, {7}}) == first);
  CHECK(pages.find({0, {8}}) == -1);           // the same block elsewhere is another page
  CHECK(pages.find({pages.number(first), {8}}) == second);
  CHECK(pages.available() == 1);
  pages.release({first, second});              // nobody holds them: they stay cached, and can be had
  CHECK(pages.available() == 3);
  pages.hold(first);
  CHECK(pages.available() == 2);
  const PageId third = pages.take();
  CHECK_FALSE(pages.last_was_evicted());
  CHECK(pages.last_was_fresh());
  CHECK(third != first);
  CHECK(third != second);
  CHECK(pages.take() == second);               // the free ones are gone: the cached one that nobody holds is evicted
  CHECK(pages.last_was_evicted());
  CHECK_FALSE(pages.last_was_fresh());
  CHECK(pages.find({pages.number(first), {8}}) == -1);
  CHECK(pages.find({0, {7}}) == first);
  CHECK(pages.available() == 0);
  const PageCounts counts = pages.counts();
  CHECK(counts.allocated == 4);
  CHECK(counts.reused == 1);
  CHECK(counts.evicted == 1);
  CHECK(counts.cached == 2);
  CHECK(counts.shared == 1);
  CHECK(counts.most_held == 3);
  pages.release({first, second, third});       // an evicted page is a page like any other
  CHECK_FALSE(pages.page(second).is_shared);
  CHECK(pages.imbalance().empty());
  for (const PageId evicted : {PageId{-1}, PageId{-1}, first}) {  // the two that were not shared first
    const PageId taken = pages.take();
    CHECK(pages.last_was_evicted() == (evicted == first));
    CHECK((taken == first) == (evicted == first));
  }
}

TEST_CASE("of a prefix the end is evicted first") {
  PageCache pages(2, 64);
  const PageId first = pages.take(), second = pages.take();
  pages.share(first, {0, {1}});
  pages.share(second, {pages.number(first), {2}});
  pages.release({first, second});
  CHECK(pages.take() == second);
  CHECK(pages.take() == first);
}

TEST_CASE("a draft is a tree, and its accepted path is what was guessed rightly") {
  std::int64_t rejected = 0, deep = 0, forks = 0;
  for (std::int64_t n = 0; n < 2000; ++n) {
    const std::int64_t last = 100 + n % 4;
    const std::vector<DraftNode> tree = draft_tree(3, n, 99, last, most_draft_nodes);
    REQUIRE(tree.size() >= 2);
    REQUIRE(tree.size() <= static_cast<std::size_t>(most_draft_nodes));
    CHECK(tree[0].parent == -1);
    CHECK(tree[0].guess == 0);
    std::set<std::int64_t> with_right_child, parents;
    for (std::size_t i = 1; i < tree.size(); ++i) {
      const DraftNode& node = tree[i];
      REQUIRE(node.parent >= 0);
      REQUIRE(node.parent < static_cast<std::int64_t>(i));
      const DraftNode& parent = tree[static_cast<std::size_t>(node.parent)];
      CHECK(node.position == parent.position + 1);
      CHECK(node.position <= last);
      if (node.guess == 0) {
        CHECK(parent.guess == 0);
        CHECK(with_right_child.insert(node.parent).second);
      }
      forks += parents.insert(node.parent).second ? 0 : 1;
    }
    // By hand: from the root to the one right child, as long as there is one.
    std::vector<std::int64_t> path = {0};
    for (bool grew = true; grew;) {
      grew = false;
      for (std::size_t i = 1; i < tree.size(); ++i) {
        if (tree[i].parent != path.back() || tree[i].guess != 0) continue;
        path.push_back(static_cast<std::int64_t>(i));
        grew = true;
        break;
      }
    }
    CHECK(accepted(tree) == path);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(tree.size()); ++i) {
      std::set<std::int64_t> ancestors;
      for (std::int64_t j = i; j >= 0; j = tree[static_cast<std::size_t>(j)].parent) ancestors.insert(j);
      for (std::int64_t j = 0; j < static_cast<std::int64_t>(tree.size()); ++j) CHECK(descends(tree, i, j) == ancestors.contains(j));
    }
    rejected += path.size() < tree.size() ? 1 : 0;
    deep += path.size() > 2 ? 1 : 0;
  }
  CHECK(rejected > 500);
  CHECK(deep > 300);
  CHECK(forks > 300);
}

TEST_CASE("activations are the generator's words, token by token") {
  const Activations activations(77);
  const Token token{{1234567890123, 300, false}, 2};
  float q[32], k[32], v[96], g[2], beta[2];
  activations.gdn(token, 1, q, k, v, g, beta);
  // The same by hand: block 0 of eight counters gives 64 values, word by word, counter by counter, low half first.
  const auto value = [&](std::uint32_t counter, std::size_t word, bool high) {
    const auto words = philox({300, counter + (1U << 8) + (2U << 16), static_cast<std::uint32_t>(1234567890123), static_cast<std::uint32_t>(1234567890123 >> 32)}, 77);
    return (static_cast<float>(high ? words[word] >> 16 : words[word] & 0xFFFF) - 32767.5F) / 32768.0F;
  };
  for (std::uint32_t n = 0; n < 8; ++n) {
    CHECK(q[2 * n] == value(n, 0, false));
    CHECK(q[2 * n + 1] == value(n, 0, true));
    CHECK(q[16 + 2 * n] == value(n, 1, false));
    CHECK(k[2 * n] == value(n, 2, false));
    CHECK(k[16 + 2 * n + 1] == value(n, 3, true));
    CHECK(v[2 * n] == value(8 + n, 0, false));
  }
  for (const float x : g) CHECK((x > 0.97F && x < 1));
  for (const float x : beta) CHECK((x > 0 && x < 1));
  // Another layer, guess, offset, stream, owner or seed: other numbers.
  const auto first = [](const Activations& of, const Token& t, int layer) {
    float a[32], b[32], c[96], d[2], e[2];
    of.gdn(t, layer, a, b, c, d, e);
    return a[0];
  };
  const float was = first(activations, token, 1);
  CHECK(was == q[0]);
  CHECK(first(activations, token, 2) != was);
  CHECK(first(activations, {token.source, 3}, 1) != was);
  CHECK(first(activations, {{1234567890123, 301, false}, 2}, 1) != was);
  CHECK(first(activations, {{1234567890124, 300, false}, 2}, 1) != was);
  CHECK(first(activations, {{1234567890123, 300, true}, 2}, 1) != was);
  CHECK(first(Activations(78), token, 1) != was);
}

// The ways in which a piece of a request can meet its pages, counted from the calls. A run that meets none of a kind verifies nothing of it.
struct Regimes {
  std::int64_t page_size = 0;
  std::map<std::string, std::int64_t> met;
  Calls calls;
  std::map<std::int64_t, std::int64_t> drafted;  ///< by row: where its last step's draft began

  void see(quire_op op, const void* args) {
    if (!calls.see(op, args) || calls.layer != 0) return;
    std::int64_t longest = 0, shortest = 1 << 30;
    for (std::size_t b = 0; b < calls.rows.size(); ++b) {
      const std::vector<std::int64_t>& positions = calls.positions[b];
      const std::int64_t begin = positions.front(), end = positions.back() + 1, row = calls.rows[b];
      longest = std::max(longest, end - begin), shortest = std::min(shortest, end - begin);
      // What a draft kept shows where the row goes on.
      if (const auto before = drafted.find(row); before != drafted.end() && begin > before->second && begin <= before->second + most_draft_nodes) {
        const std::int64_t page_end = (before->second / page_size + 1) * page_size;
        count("a kept path that goes on past a page's end", begin > page_end);
        count("a kept path of several tokens that ends at a page's end", begin == page_end && before->second + 1 < begin);
      }
      drafted.erase(row);
      if (calls.is_draft) {
        const std::int64_t last = *std::max_element(positions.begin(), positions.end());
        drafted[row] = begin;
        count("a draft whose root is a page's first token", begin % page_size == 0);
        count("a draft across a page's end", begin / page_size != last / page_size);
      } else if (end - begin == 1) {
        count("a single token that opens a page", begin % page_size == 0);
      } else {
        count("a piece that begins inside a page", begin % page_size != 0);
        count("a piece that ends at a page's end", end % page_size == 0);
        count("a piece that ends inside a page", end % page_size != 0);
        count("a piece that crosses two ends or more", end / page_size - begin / page_size > 1 && end % page_size != 0);
      }
    }
    count("decoding beside prompts", !calls.is_draft && shortest == 1 && longest > 1);
  }
  void count(const std::string& what, bool is_met) { met[what] += is_met ? 1 : 0; }
};

TEST_CASE("the engine's outputs and states are those of an uncached computation") {
  struct Setting {
    std::int64_t page_size, pages, batch_tokens, piece, lanes, window;
    double draft;
    std::int64_t longer = 1;  ///< outputs, so many times
  };
  std::map<std::string, std::int64_t> met;
  const Setting settings[] = {
      {0, 400, 4096, 256, 64, 64, 0.25}, {64, 30, 300, 64, 8, 64, 0.5}, {128, 24, 97, 50, 5, 1, 1},
      {192, 20, 1000, 1000, 3, 200, 0},  {320, 12, 7, 3, 2, 33, 0.4},   {64, 400, 1, 1, 64, 64, 0},
      {64, 60, 300, 100, 6, 40, 0.8, 8},
  };
  for (const Setting& setting : settings) {
    CAPTURE(setting.page_size);
    CAPTURE(setting.pages);
    Run run;
    run.options.page_size = setting.page_size;
    run.options.pages = setting.pages;
    run.options.batch_tokens = setting.batch_tokens;
    run.options.piece = setting.piece;
    run.options.lanes = setting.lanes;
    run.options.window = setting.window;
    run.options.draft = setting.draft;
    if (setting.batch_tokens == 1) run.options.requests = 4;
    run.text = made_trace(20, setting.longer);
    Regimes regimes;
    const Watched watched([&](quire_op op, const void* args) { regimes.see(op, args); });
    regimes.page_size = setting.page_size > 0 ? setting.page_size : 64;
    run.go(Watched::backend());
    for (const auto& [what, times] : regimes.met) met[what] += times;
    CHECK_MESSAGE(run.engine().verified().mismatches.empty(), run.first());
    CHECK(exit_status(run.replayed) == 0);
    const Counts& counts = run.engine().counts();
    CHECK(counts.requests == static_cast<std::int64_t>(run.trace.requests.size()));
    CHECK(counts.cached_tokens + counts.computed_tokens == run.trace.tokens());
    CHECK(run.engine().verified().requests == counts.requests);
    CHECK(run.engine().verified().tokens == counts.computed_tokens);
    CHECK(counts.most_tokens <= std::max<std::int64_t>(setting.batch_tokens, 1));
    CHECK(counts.most_lanes <= setting.lanes);
    CHECK(counts.findings == 0);
    CHECK(counts.checks == counts.steps);
    CHECK((counts.drafts > 0) == (setting.draft > 0 && setting.batch_tokens >= most_draft_nodes));
    CHECK(run.engine().page_counts().most_held <= setting.pages);
    if (setting.page_size == 64 && setting.pages == 30) {
      CHECK(run.engine().page_counts().evicted > 0);
      CHECK(run.engine().page_counts().reused > 0);
      CHECK(counts.cached_tokens > 0);
    }
    CHECK(run.engine().verified().largest_error < 1);
  }
  CHECK(met.size() == 10);
  for (const auto& [what, times] : met) CHECK_MESSAGE(times > 3, what << ": " << times);
}

TEST_CASE("cached tokens are those of the longest prefix that an earlier request left") {
  // One at a time, so that what is cached is known: page 0 of request 0 serves requests 1 and 2, both pages request 2.
  Run run;
  run.text = line(0, 1100, 2, {1, 2, 3}) + line(0, 600, 2, {1, 9}) + line(0, 1200, 2, {1, 2, 8}) + line(0, 1024, 2, {1, 2});
  run.options.lanes = 1;
  run.options.draft = 0;
  run.go();
  // Blocks of 64 tokens. Of the last one at least one prompt token is computed: its second page is not taken.
  CHECK(run.engine().counts().cached_tokens == 0 + 64 + 128 + 64);
  CHECK(run.engine().page_counts().shared == 0 + 1 + 2 + 1);
  CHECK(run.engine().verified().mismatches.empty());
}

TEST_CASE("each planted mistake shows, with its place") {
  const auto planted = [](Fault fault) {
    Run run;
    run.options.fault = fault;
    run.options.check = false;
    run.options.lanes = 8;
    run.options.pages = 60;
    run.options.draft = 0.5;
    run.go();
    return run.engine().verified().mismatches;
  };
  for (const std::string_view name : fault_names()) {
    CAPTURE(std::string(name));
    const std::vector<Mismatch> mismatches = planted(fault_named(name));
    REQUIRE_FALSE(mismatches.empty());
    const Mismatch& first = mismatches.front();
    MESSAGE(std::string(name) << ": " << mismatches.size() << ", " << first.message);
    CHECK(has(first.message, "step " + std::to_string(first.step)));
    CHECK(first.page.has_value());
    CHECK(first.request.has_value());
    CHECK_FALSE(first.layer.empty());
    if (name == "window") CHECK(first.layer == "attention");
    if (name == "stale" || name == "boundary" || name == "reject") CHECK(has(first.layer, "gdn"));
    if (name == "share") {
      CHECK(first.what == "shared page");
      // Two pages name the shared one's slots: the books don't come out even.
      CHECK(std::any_of(mismatches.begin(), mismatches.end(), [](const Mismatch& one) { return one.what == "pages" && has(one.message, "have one slot"); }));
    }
    CHECK(std::is_sorted(mismatches.begin(), mismatches.end()));
  }
  CHECK(planted(Fault::none).empty());
  CHECK(has(refusal([] { fault_named("nonsense"); }), "--fault: \"nonsense\"; allowed: stale, share, boundary, reject, window, evict"));
}

TEST_CASE("summaries and states are the same on any number of threads") {
  const char* before = std::getenv("QUIRE_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  std::vector<std::string> texts;
  for (const char* threads : {"1", "2", "5"}) {
    ::setenv("QUIRE_THREADS", threads, 1);
    Run run;
    run.options.verify = 0.3;
    run.go();
    texts.push_back(summary(run.options, run.engine(), run.replayed.report));
  }
  before == nullptr ? ::unsetenv("QUIRE_THREADS") : ::setenv("QUIRE_THREADS", kept.c_str(), 1);
  CHECK(texts[0] == texts[1]);
  CHECK(texts[0] == texts[2]);
  Run other;
  other.options.seed = 1;
  other.options.verify = 0.3;
  other.go();
  CHECK(summary(other.options, other.engine(), other.replayed.report) != texts[0]);
}

// Row `token` of a result of the case format.
std::vector<double> row_of(const json& tensor, std::int64_t token, std::int64_t width) {
  std::vector<double> row;
  for (std::int64_t e = 0; e < width; ++e) row.push_back(tensor["data"][static_cast<std::size_t>(token * width + e)]);
  return row;
}

TEST_CASE("a saved request is a program whose outputs are those of the whole request") {
  const File file("", "case.json");
  const std::filesystem::path side = std::filesystem::path(file.path()).replace_extension(".npz");
  Run run;
  run.options.save = file.path();
  run.options.save_request = 8;
  run.options.draft = 0.5;
  run.options.page_size = 64;
  run.options.lanes = 4;
  run.go();
  run.engine().save();
  std::ifstream saved(file.path());
  const json program = json::parse(saved);
  CHECK(program["format"] == 1);
  CHECK(program["semantics"] == 1);
  conformance::EvaluateOptions options;
  options.folder = std::filesystem::path(file.path()).parent_path();
  const conformance::Evaluated evaluated = conformance::evaluate(program, options);
  CHECK(evaluated.ok);
  const json results = json::parse(evaluated.text);
  std::filesystem::remove(side);

  // What every position should give, computed whole: attention bit for bit, the rule but for states that were float32 between calls.
  const Request& request = *std::find_if(run.trace.requests.begin(), run.trace.requests.end(), [](const Request& r) { return r.number == 8; });
  const std::int64_t n = request.tokens();
  const Activations activations(run.options.seed);
  const Tensor q = Tensor::empty(DType::f32, {1, n, 2, 32}), k = Tensor::empty(DType::f32, {1, n, 1, 32}), v = Tensor::empty(DType::f32, {1, n, 1, 48});
  const Tensor rq = Tensor::empty(DType::f32, {n, 1, 32}), rk = Tensor::empty(DType::f32, {n, 1, 32}), rv = Tensor::empty(DType::f32, {n, 2, 48}),
               g = Tensor::empty(DType::f32, {n, 2}), beta = Tensor::empty(DType::f32, {n, 2});
  for (std::int64_t p = 0; p < n; ++p) {
    activations.attention({request.source(p), 0}, q.data<float>() + p * 64, k.data<float>() + p * 32, v.data<float>() + p * 48);
    activations.gdn({request.source(p), 0}, 2, rq.data<float>() + p * 32, rk.data<float>() + p * 32, rv.data<float>() + p * 96, g.data<float>() + p * 2, beta.data<float>() + p * 2);
  }
  const On on{&backend("reference"), nullptr};
  const Tensor attention = attend(Index::whole(1, n).window(64), q, k, v, {}, {}, {}, on).out;
  GdnPrefill call;
  call.inputs = {rq, rk, rv, g, beta, {}, true};
  call.cu_seqlens = Tensor::of({0, n});
  const Tensor rule = gdn_prefill(std::move(call), on).output;

  std::int64_t position = -1, attended = 0, drafted = 0;
  double largest = 0;
  for (std::size_t s = 0; s < program["steps"].size(); ++s) {
    const json &step = program["steps"][s], &result = results[s];
    REQUIRE(result["status"] == "ok");
    CHECK(result["intact"] == true);
    if (step["op"] != "attend" && !has(step["as"], "gdn2")) continue;
    // Which positions the step's tokens stand at: of a draft those that were accepted are found by their agreement at the next step's begin.
    static std::vector<std::int64_t> positions;
    if (step["op"] == "attend") {
      positions.clear();
      const json pos = step["index"]["pos"].contains("data") ? step["index"]["pos"]["data"] : json();
      if (step["index"].contains("then") && step["index"]["then"].size() == 2) {
        drafted += 1;
        positions = {pos.at(0)};  // the root alone
      } else if (!pos.is_null()) {
        for (const json& p : pos) positions.push_back(p);
      }
      if (!positions.empty()) CHECK(positions.front() > position);
      if (!positions.empty()) position = positions.back();
    }
    const json& tensor = step["op"] == "attend" ? result["out"] : result["output"];
    const Tensor& whole = step["op"] == "attend" ? attention : rule;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const std::vector<double> row = row_of(tensor, static_cast<std::int64_t>(i), 96);
      for (std::int64_t e = 0; e < 96; ++e) {
        const double expected = whole.data<float>()[positions[i] * 96 + e], got = row[static_cast<std::size_t>(e)];
        if (step["op"] == "attend") {
          CHECK(got == expected);
          ++attended;
        } else {
          largest = std::max(largest, std::fabs(got - expected));
        }
      }
    }
  }
  CHECK(attended > 96 * 20);
  CHECK(drafted > 3);
  CHECK(largest < 2e-6);
  CHECK(largest > 0);  // states were rounded between calls: the comparison is of different computations
}

TEST_CASE("a step is saved with what it reads of the pools") {
  const File file("", "step.json");
  const std::filesystem::path side = std::filesystem::path(file.path()).replace_extension(".npz");
  Run run;
  run.options.save = file.path();
  run.options.save_step = 20;
  run.go();
  run.engine().save();
  std::ifstream saved(file.path());
  const json program = json::parse(saved);
  conformance::EvaluateOptions options;
  options.folder = std::filesystem::path(file.path()).parent_path();
  const conformance::Evaluated evaluated = conformance::evaluate(program, options);
  CHECK(evaluated.ok);
  const std::string text = evaluated.text;
  std::filesystem::remove(side);
  // Step 20 goes on from what earlier ones stored: without the pools its outputs are NaN, and with them they are not.
  bool is_read = false;
  for (const json& step : program["steps"]) is_read = is_read || step["op"] == "attend";
  CHECK(is_read);
  CHECK_FALSE(has(json::parse(text)[program["steps"][0]["op"] == "attend" ? 0 : 1]["out"].dump(), "nan"));

  Run none;
  none.options.save = file.path();
  none.options.save_step = 1000000;
  none.go();
  CHECK(has(refusal([&] { none.engine().save(); }), "--save: step 1000000; allowed: a step or request of this run"));
  Run nowhere;
  nowhere.options.save = "/nowhere/at/all.json";
  nowhere.options.requests = 2;
  nowhere.go();
  CHECK(has(refusal([&] { nowhere.engine().save(); }), "--save: "));
}

TEST_CASE("what can't be run is refused before it begins") {
  const auto refused = [](const std::function<void(Options&)>& change) {
    Run run;
    change(run.options);
    return refusal([&] { run.go(); });
  };
  CHECK(has(refused([](Options& o) { o.page_size = 100; }), "--page-size: 100; allowed: a multiple of 64"));
  CHECK(has(refused([](Options& o) { o.pages = 3; }), "--pages: 3; allowed: at least "));
  CHECK(has(refused([](Options& o) { o.max_memory = 1 << 20; }), "--max-memory: 1 MiB; allowed: at least "));
  CHECK(has(refused([](Options& o) { o.pages = std::int64_t{1} << 60; }), "--pages"));
  CHECK(has(refused([](Options& o) { o.save_step = 3; }), "--save: nothing"));
  CHECK(has(refused([](Options& o) { o.save = "x", o.save_step = 3, o.save_request = 4; }), "--save-step: together with --save-request"));
  CHECK(has(refused([](Options& o) { o.save = "x", o.save_request = 4000; }), "--save-request: 4000"));
  CHECK(has(refused([](Options& o) { o.start = 20; }), "--start: 20; allowed: 0 to 19"));
}

TEST_CASE("an interrupted run says what was done") {
  Run run;
  const File file(run.text);
  run.trace = read_trace(file.path(), 0, 0, 0.125);
  settle(run.options, run.trace);
  std::int64_t steps = 0;
  Watch watch;
  watch.interrupted = [&] { return ++steps > 15; };
  const Replayed replayed = replay::replay(run.options, run.trace, backend("reference"), watch);
  CHECK(exit_status(replayed) == 130);
  CHECK(has(summary(run.options, *replayed.engine, replayed.report), "interrupted on reference"));
  CHECK(json::parse(json_report(run.options, *replayed.engine, replayed.report))["state"] == "interrupted");
  CHECK(replayed.engine->counts().requests < 20);
}

}  // namespace
