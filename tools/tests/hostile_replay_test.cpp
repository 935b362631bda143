// What replay's verification must notice: a backend that changes a number, at any place, and books that don't come out even.
#include "replay_helpers.h"

#include "replay/activations.h"
#include "replay/draft.h"
#include "replay/layers.h"
#include "replay/pages.h"

#include <bit>
#include <cmath>
#include <limits>
#include <set>

namespace {

using namespace quire;
using namespace quire::replay;
using namespace quire::replay::testing;

constexpr std::int64_t width = 96;  // of a token's output in every layer
constexpr std::int64_t state_width = std::int64_t{2} * 48 * 32;

// One request of 209 tokens on four pages of 64, which are given out in order: prompt 200, the last page holds 17.
Run one_request() {
  Run run;
  run.text = line(0, 1600, 80, {1, 2, 3, 4});
  run.options.draft = 0;
  run.options.piece = 50;
  run.options.pages = 12;
  return run;
}
constexpr std::int64_t last_token = 208, last_page = 3;

// The bound that a mismatch tells.
double allowed_in(const std::string& message) { return std::stod(message.substr(message.find("allowed ") + 8)); }

// What is found when `delta` is added to one number of a token's output.
std::vector<Mismatch> with_wrong_output(int layer, std::int64_t token, std::int64_t element, float delta, std::int64_t& step,
                                        double* largest_error = nullptr) {
  Calls calls;
  const Watched watched([&](quire_op op, const void* args) {
    if (!calls.see(op, args) || calls.layer != layer) return;
    const std::vector<std::int64_t>& positions = calls.positions.at(0);
    if (token < positions.front() || token > positions.back()) return;
    calls.out[(token - positions.front()) * width + element] += delta;
    step = calls.step;
  });
  Run run = one_request();
  const Verified& verified = run.go(Watched::backend()).engine().verified();
  if (largest_error != nullptr) *largest_error = verified.largest_error;
  return verified.mismatches;
}

TEST_CASE("a wrong output is found in every layer, at the first and the last token, with its place") {
  for (int layer = 0; layer < 4; ++layer) {
    for (const auto& [token, element] : std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 0}, {last_token, width - 1}, {100, 50}}) {
      CAPTURE(layer);
      CAPTURE(token);
      std::int64_t step = -1;
      const std::vector<Mismatch> found = with_wrong_output(layer, token, element, 0.25F, step);
      REQUIRE(found.size() == 1);
      const Mismatch& one = found.front();
      const std::string name = layer == 0 ? "attention" : "gdn " + std::to_string(layer - 1);
      CHECK(one.what == "output");
      CHECK(one.layer == name);
      CHECK(one.step == step);
      CHECK(one.request == 0);
      CHECK(one.position == token);
      CHECK(one.page == token / 64);
      CHECK(has(one.message, "output, head " + std::to_string(element / 48) + ", element " + std::to_string(element % 48) + ":"));
      // Float32's tolerance, not more: half as much again is found, beside the rounding of a number below 1, and half is not.
      const double allowed = allowed_in(one.message);
      CHECK(allowed < 1e-5);
      if (token != last_token) continue;
      CHECK(with_wrong_output(layer, token, element, static_cast<float>(1.6 * allowed + 0x1p-24), step).size() == 1);
      double largest_error = 0;
      CHECK(with_wrong_output(layer, token, element, static_cast<float>(0.4 * allowed), step, &largest_error).empty());
      if (layer > 0) CHECK(largest_error > 0.2);
      CHECK(largest_error < 0.8);
    }
  }
  std::int64_t step = -1;
  const std::vector<Mismatch> nan = with_wrong_output(2, 150, 7, std::numeric_limits<float>::quiet_NaN(), step);
  REQUIRE(nan.size() == 1);
  CHECK(has(nan.front().message, "got nan"));
}

// The same of one number of a page's state, when the request's last call has stored its states.
std::vector<Mismatch> with_wrong_state(int layer, std::int64_t page, std::int64_t element, float delta) {
  Calls calls;
  const Watched watched([&](quire_op op, const void* args) {
    if (calls.see(op, args) && calls.layer == 3 && calls.positions.at(0).back() == last_token)
      calls.states.at(layer)[page * state_width + element] += delta;
  });
  Run run = one_request();
  std::vector<Mismatch> states;
  for (const Mismatch& mismatch : run.go(Watched::backend()).engine().verified().mismatches) {
    if (mismatch.what == "state") states.push_back(mismatch);
  }
  return states;
}

TEST_CASE("a wrong state is found in every layer and page, with its place") {
  for (int layer = 1; layer < 4; ++layer) {
    for (std::int64_t page = 0; page <= last_page; ++page) {
      CAPTURE(layer);
      CAPTURE(page);
      const std::int64_t element = page == 0 ? 0 : page == last_page ? state_width - 1 : 1777 + page;
      const std::vector<Mismatch> found = with_wrong_state(layer, page, element, 0.25F);
      REQUIRE(found.size() == 1);
      const Mismatch& one = found.front();
      CHECK(one.layer == "gdn " + std::to_string(layer - 1));
      CHECK(one.request == 0);
      CHECK(one.page == page);
      CHECK(one.position == std::min(64 * page + 63, last_token));
      // [H, V, K] = [2, 48, 32].
      CHECK(has(one.message, "state, head " + std::to_string(element / 1536) + ", value " + std::to_string(element / 32 % 48) + ", key " +
                                 std::to_string(element % 32) + ":"));
      const double allowed = allowed_in(one.message);
      CHECK(allowed < 1e-5);
      if (page != layer) continue;
      CHECK(with_wrong_state(layer, page, element, static_cast<float>(1.6 * allowed + 0x1p-24)).size() == 1);
      CHECK(with_wrong_state(layer, page, element, static_cast<float>(0.4 * allowed)).empty());
    }
  }
}

TEST_CASE("what a request began with is compared too") {
  // Request 1 goes on from page 1 of request 0, whose state is changed when request 0 is gone and its first step has begun.
  Run run;
  run.text = line(0, 1100, 1, {1, 2, 3}) + line(1000000, 1200, 1, {1, 2, 8});
  run.options.draft = 0;
  Calls calls;
  const Watched watched([&](quire_op op, const void* args) {
    if (calls.see(op, args) && calls.layer == 0 && calls.positions.at(0).front() == 128) calls.states.at(2)[state_width + 5] += 0.25F;
  });
  run.go(Watched::backend());
  const auto& found = run.engine().verified().mismatches;
  CHECK(std::any_of(found.begin(), found.end(), [](const Mismatch& one) {
    return one.what == "state" && one.request == 1 && one.position == 127 && one.page == 1 && one.layer == "gdn 1";
  }));
}

TEST_CASE("after a cached prefix a wrong output has its token's place in the request") {
  Run run;
  run.text = line(0, 1100, 1, {1, 2, 3}) + line(1000000, 1200, 1, {1, 2, 8});
  run.options.draft = 0;
  Calls calls;
  const Watched watched([&](quire_op op, const void* args) {
    if (calls.see(op, args) && calls.layer == 3 && calls.positions.at(0).front() == 128) calls.out[2 * width + 95] += 0.25F;
  });
  run.go(Watched::backend());
  REQUIRE(run.engine().verified().mismatches.size() == 1);
  const Mismatch& one = run.engine().verified().mismatches.front();
  CHECK(one.request == 1);
  CHECK(one.position == 130);
  CHECK(one.page == 2);  // request 0 gave it back, and it is the next to be given out
  CHECK(one.step == calls.step);
  CHECK(has(one.message, "layer gdn 2"));
  CHECK(has(one.message, "head 1, element 47"));
}

TEST_CASE("a request that is saved is verified, whatever the share that is drawn") {
  for (const bool is_saved : {false, true}) {
    Run run;
    run.options.verify = 0;
    run.options.requests = 5;
    if (is_saved) run.options.save = "case.json", run.options.save_request = 3;  // written only when `save` is called
    CHECK(run.go().engine().verified().requests == (is_saved ? 1 : 0));
  }
}

TEST_CASE("what was not kept is missed") {
  // A request by hand, without a step: everything of it is missing, then the last number of one layer, then a page.
  Options options;
  options.layers = 1;
  const Layers layers(options, 3, 64, On{&backend("reference"), nullptr});
  const PageCache pages(3, 64);
  Request request;
  request.number = 7, request.prompt = 70, request.block_size = 64;
  Sequence sequence;
  sequence.request = &request;
  sequence.outputs = std::make_unique<Outputs>();
  sequence.outputs->layers.resize(2);
  sequence.pages = {0, 1};
  const auto told = [&] {
    Verified verified;
    verify(sequence, layers, pages, Activations(0), 64, Contracts::of(backend("reference")), verified);
    return verified.mismatches.empty() ? std::string() : verified.mismatches.front().message;
  };
  CHECK(told() == "step 0, request 7: outputs of 0 tokens and 2 pages were kept, or fewer in some layer; there should be 70 and 2");
  sequence.outputs->steps.assign(70, 4);
  for (std::vector<float>& layer : sequence.outputs->layers) layer.assign(static_cast<std::size_t>(70 * width), 0.0F);
  CHECK(has(told(), "token 0: output"));  // complete and wrong
  sequence.outputs->layers[1].pop_back();
  CHECK(has(told(), "step 4, request 7: outputs of 70 tokens and 2 pages were kept, or fewer in some layer"));
  sequence.outputs->layers[1].push_back(0);
  for (const std::vector<PageId>& wrong : {std::vector<PageId>{0}, std::vector<PageId>{0, 1, 2}}) {
    sequence.pages = wrong;
    CHECK(has(told(), "there should be 70 and 2"));
  }
}

// The numbers of a page at its corners, with their layers. Without drafts a page has the slots 64 * id ... and the state id.
std::vector<std::pair<int, float*>> corners(const Calls& calls, std::int64_t page) {
  std::vector<std::pair<int, float*>> all;
  for (const std::int64_t slot : {64 * page, 64 * page + 63}) {
    for (float* one : {calls.k_pool + slot * 32, calls.k_pool + slot * 32 + 31, calls.v_pool + slot * 48, calls.v_pool + slot * 48 + 47})
      all.emplace_back(0, one);
  }
  for (const auto& [layer, states] : calls.states) {
    for (const std::int64_t element : {std::int64_t{0}, state_width / 2, state_width - 1})
      all.emplace_back(layer, states + page * state_width + element);
  }
  return all;
}

// The lowest bit of a number turned over.
void turn_bit(float* number) { *number = std::bit_cast<float>(std::bit_cast<std::uint32_t>(*number) ^ 1U); }

TEST_CASE("the digest and the last comparison cover every bit of the shared pages") {
  constexpr std::int64_t parts = 8 + 3 * 3;
  for (std::int64_t part = 0; part < parts; ++part) {
    CAPTURE(part);
    Run run = one_request();
    run.options.verify = 0;
    run.prepare();
    Calls calls;
    const Watched watched([&](quire_op op, const void* args) { calls.see(op, args); });
    Engine engine(run.options, run.trace, Watched::backend());
    while (!engine.is_done()) engine.round();
    const std::uint64_t digest = engine.digest();
    const std::int64_t page = part % 3;  // three pages are full of prompt tokens
    const auto [layer, number] = corners(calls, page).at(static_cast<std::size_t>(part));
    turn_bit(number);
    CHECK(engine.digest() != digest);
    engine.finish();
    REQUIRE(engine.verified().mismatches.size() == 1);
    const Mismatch& one = engine.verified().mismatches.front();
    CHECK(one.what == "shared page");
    CHECK(one.page == page);
    CHECK(one.layer == Layers::name(layer));
    CHECK_FALSE(one.request.has_value());
    turn_bit(number);
    CHECK(engine.digest() == digest);
    // Page 3 is not shared: what it holds is nobody's.
    turn_bit(corners(calls, last_page).at(static_cast<std::size_t>(part)).second);
    CHECK(engine.digest() == digest);
  }
}

TEST_CASE("the digest covers every output that is kept") {
  const auto digest_of = [](int layer, std::int64_t token, std::int64_t element) {
    Calls calls;
    const Watched watched([&](quire_op op, const void* args) {
      if (!calls.see(op, args) || calls.layer != layer) return;
      const std::vector<std::int64_t>& positions = calls.positions.at(0);
      if (token >= positions.front() && token <= positions.back()) turn_bit(calls.out + (token - positions.front()) * width + element);
    });
    Run run = one_request();
    run.options.verify = 0;
    run.go(Watched::backend());
    return run.engine().digest();
  };
  std::set<std::uint64_t> digests = {digest_of(-1, 0, 0)};
  for (int layer = 0; layer < 4; ++layer) {
    digests.insert(digest_of(layer, 0, 0));
    digests.insert(digest_of(layer, last_token, width - 1));
  }
  CHECK(digests.size() == 9);
}

TEST_CASE("a shared page that changes is named once: at once where a step reads it, else in turn") {
  const std::string first = line(0, 1536, 2, {1, 2, 3});  // leaves three shared pages
  SUBCASE("nobody reads it") {
    for (std::int64_t page = 0; page < 3; ++page) {
      Run run;
      run.text = first + line(1000000, 400, 800, {9});
      run.options.draft = 0;
      Calls calls;
      std::int64_t changed_at = -1;
      const Watched watched([&](quire_op op, const void* args) {
        if (!calls.see(op, args) || calls.layer != 0 || calls.positions.at(0).front() != 60) return;
        turn_bit(corners(calls, page).front().second);
        changed_at = calls.step;
      });
      run.go(Watched::backend());
      REQUIRE(run.engine().verified().mismatches.size() == 1);
      const Mismatch& one = run.engine().verified().mismatches.front();
      CHECK(one.page == page);
      CHECK(one.step > changed_at);
      CHECK(one.step <= changed_at + 2);  // two of three pages at a step
      CHECK(run.engine().counts().steps > changed_at + 50);
    }
  }
  SUBCASE("a request goes on from it") {
    for (std::int64_t page = 0; page < 2; ++page) {
      Run run;
      run.text = first + line(1000000, 1536, 1, {1, 2, 4});
      run.options.draft = 0;
      run.options.window = 100;  // from token 128 back into page 0
      run.options.verify = 0;
      Calls calls;
      const Watched watched([&](quire_op op, const void* args) {
        if (calls.see(op, args) && calls.layer == 3 && calls.positions.at(0).front() == 128) turn_bit(corners(calls, page).back().second);
      });
      run.go(Watched::backend());
      REQUIRE(run.engine().verified().mismatches.size() == 1);
      const Mismatch& one = run.engine().verified().mismatches.front();
      CHECK(one.page == page);
      CHECK(one.request == 1);
      CHECK(one.step == calls.step);
    }
  }
}

TEST_CASE("a page that was never written holds NaN, one that was keeps what it held") {
  Options options;
  options.layers = 2;
  const Layers layers_of_two(options, 2, 64, On{&backend("reference"), nullptr});
  Layers layers = layers_of_two;
  const auto all_nan = [](const float* numbers, std::int64_t count) {
    return std::all_of(numbers, numbers + count, [](float x) { return std::isnan(x); });
  };
  const auto no_nan = [](const float* numbers, std::int64_t count) {
    return std::none_of(numbers, numbers + count, [](float x) { return std::isnan(x); });
  };
  const std::vector<std::pair<float*, std::int64_t>> pools = {{layers.k_pool().data<float>(), 64 * 32},
                                                              {layers.v_pool().data<float>(), 64 * 48},
                                                              {layers.states(1).data<float>(), state_width},
                                                              {layers.states(2).data<float>(), state_width}};
  for (const auto& [pool, half] : pools) std::fill_n(pool, 2 * half, 0.0F);
  Page page;
  page.state = 1;
  for (std::int64_t slot = 64; slot < 128; ++slot) page.slots.push_back(slot);
  layers.poison(page);
  for (const auto& [pool, half] : pools) {
    CHECK(no_nan(pool, half));
    CHECK(all_nan(pool + half, half));
  }

  // The engine: who starts from what a page holds (a fault) meets NaN in a fresh page, and without the fault request 1 gets the page that
  // request 0 gave back as it left it.
  const auto two = [&](Fault fault, const Watched::After& after) {
    Run run;
    run.text = line(0, 400, 1, {}) + line(1000000, 300, 1, {});
    run.options.fault = fault;
    const Watched watched(after);
    return run.go(Watched::backend()).engine().verified().mismatches;
  };
  const std::vector<Mismatch> stale = two(Fault::stale, [](quire_op, const void*) {});
  REQUIRE_FALSE(stale.empty());
  CHECK(has(stale.front().message, "request 0, layer gdn 0, page 0, token 0: output"));
  CHECK(has(stale.front().message, "got nan"));
  Calls calls;
  float left = 0, found = 0;
  CHECK(two(Fault::none, [&](quire_op op, const void* args) {
          if (!calls.see(op, args)) return;
          if (calls.step == 0 && calls.layer == 3) left = calls.states.at(2)[17];
          if (calls.step == 1 && calls.layer == 0) found = calls.states.at(2)[17];
        }).empty());
  CHECK(calls.step == 1);
  CHECK(left != 0);
  CHECK(found == left);
}

TEST_CASE("evicted pages are nobody's: they are written again, and found no more") {
  // Three pages. Request 0 leaves two in the cache; request 1 takes all three and shares none, since it puts out nearly all of its tokens;
  // request 2 begins like request 0 and finds nothing.
  Run run;
  run.text = line(0, 1100, 1, {1, 2, 3}) + line(1000000, 80, 1032, {}) + line(2000000, 1100, 1, {1, 2, 8});
  run.options.draft = 0;
  run.options.pages = 3;
  run.go();
  CHECK_MESSAGE(run.engine().verified().mismatches.empty(), run.first());
  CHECK(run.engine().page_counts().evicted == 2);
  CHECK(run.engine().page_counts().reused == 3 + 3);
  CHECK(run.engine().counts().cached_tokens == 0);
  CHECK(run.engine().guard().watched() == 2 + 2);
}

TEST_CASE("only pages full of prompt tokens enter the cache") {
  Run run;
  run.text = line(0, 512, 600, {1});  // prompt 64, 138 tokens in all: pages 0 and 1 are full, page 1 of what was put out
  run.options.draft = 0;
  run.go();
  CHECK(run.trace.tokens() == 138);
  CHECK(run.engine().page_counts().cached == 1);
  CHECK(run.engine().guard().watched() == 1);
}

TEST_CASE("a request's own tokens are no block's and no other request's") {
  Run run;
  run.text = line(0, 1100, 1, {1, 2, 3}) + line(1000000, 1100, 1, {}) +
             line(2000000, 1100, 1, {});  // request 1's own tokens are its own, not those of block 1
  run.options.draft = 0;
  run.go();
  CHECK(run.engine().counts().cached_tokens == 0);
  CHECK(run.engine().page_counts().cached == 6);
  CHECK(run.engine().verified().mismatches.empty());
}

TEST_CASE("a page's place is that of every token before it, whoever computed them") {
  // Requests 0 and 1 compute blocks 1 and 2 in the same step, and request 1 goes on with block 4. Request 2 finds 1, 2 and 4; request 3
  // begins with block 4 and finds nothing; request 5 finds request 4's block 6, but not block 2 after it.
  Run run;
  run.text = line(0, 1200, 1, {1, 2, 3}) + line(0, 2000, 1, {1, 2, 4, 5}) + line(1000000, 2000, 1, {1, 2, 4, 9}) +
             line(2000000, 1000, 1, {4, 8}) + line(3000000, 600, 1, {6, 7}) + line(4000000, 1500, 1, {6, 2, 10});
  run.options.draft = 0;
  run.go();
  const Counts& counts = run.engine().counts();
  CHECK(counts.most_lanes == 2);
  CHECK(counts.cached_tokens == 3 * 64 + 0 + 0 + 64);
  CHECK(run.engine().page_counts().shared == 3 + 1);
  CHECK(run.engine().verified().mismatches.empty());
}

TEST_CASE("pages that go on from a cached prefix have their place after all of it") {
  // Request 1 goes on from blocks 1 and 2 of request 0 with block 4. Request 2 finds all three, request 3 nothing, request 4 block 1.
  Run run;
  run.text = line(0, 1100, 1, {1, 2, 3}) + line(1000000, 2000, 1, {1, 2, 4, 5}) + line(2000000, 2000, 1, {1, 2, 4, 9}) +
             line(3000000, 1000, 1, {4, 8}) + line(4000000, 1500, 1, {1, 4, 10});
  run.options.draft = 0;
  run.go();
  CHECK(run.engine().counts().cached_tokens == 128 + 192 + 0 + 64);
  CHECK(run.engine().verified().mismatches.empty());
}

TEST_CASE("pages whose tokens come from several blocks differ when one of them does") {
  // Pages of 128 tokens, blocks of 64: page 0 of each request begins or ends like another's.
  Run run;
  run.text = line(0, 1100, 1, {1, 2, 3}) + line(1000000, 1100, 1, {1, 4, 3}) + line(2000000, 1100, 1, {5, 2, 3}) +
             line(3000000, 1100, 1, {1, 2, 6});
  run.options.page_size = 128;
  run.options.draft = 0;
  run.go();
  CHECK(run.engine().counts().cached_tokens == 128);
  CHECK(run.engine().page_counts().cached == 3);
  CHECK(run.engine().verified().mismatches.empty());
}

TEST_CASE("requests wait for their time, and for memory") {
  const auto lanes = [](std::int64_t second) {
    Run run;
    run.text = line(0, 400, 80, {1}) + line(second, 400, 80, {2});
    run.go();
    return run.engine().counts().most_lanes;
  };
  CHECK(lanes(0) == 2);
  CHECK(lanes(1000000) == 1);

  Run run;
  run.options.draft = 0;
  run.options.requests = 8;
  run.go();
  const std::int64_t bytes = run.engine().most_bytes();
  Run less;
  less.options.draft = 0;
  less.options.requests = 8;
  less.options.max_memory = bytes - 1;
  less.go();
  CHECK(less.engine().most_bytes() < bytes);
  CHECK(less.engine().verified().requests == 8);
  CHECK(less.engine().verified().mismatches.empty());
  // What a request's verification took is given back: the most is that of a few at a time.
  Run alone;
  alone.options.draft = 0;
  alone.options.requests = 8;
  alone.options.lanes = 1;
  alone.go();
  std::int64_t longest = 0, all = 0;
  for (const Request& request : alone.trace.requests) {
    const std::int64_t needed = outputs_bytes(request.tokens(), 3) + verify_bytes(request.tokens(), 64);
    longest = std::max(longest, needed), all += needed;
  }
  CHECK(all > 3 * longest);
  const std::int64_t table = 8 * (alone.trace.longest() + (alone.trace.longest() + 63) / 64);
  CHECK(alone.engine().most_bytes() == Layers::bytes(400, 64, 3) + table + 8 * 400 * 64 + longest);
}

TEST_CASE("a request is admitted only when every page that it may need can be had") {
  const auto lanes = [](const std::string& text, std::int64_t pages, double draft = 0) {
    Run run;
    run.text = text;
    run.options.draft = draft;
    run.options.pages = pages;
    run.go();
    CHECK_MESSAGE(run.engine().verified().mismatches.empty(), run.first());
    CHECK(run.engine().counts().requests == static_cast<std::int64_t>(run.trace.requests.size()));
    return run.engine().counts().most_lanes;
  };
  // Request 0 runs for long and needs 3 pages of 64 in the end, 1 at first; request 1 needs 3 as well.
  const std::string running = line(0, 80, 1200, {}) + line(20, 1536, 1, {});
  CHECK(lanes(running, 5) == 1);
  CHECK(lanes(running, 6) == 2);
  // Request 0 leaves pages of blocks 1 and 2 in the cache, request 1 holds two others, and request 2 wants the cached ones and one more:
  // those that it goes on from are none that it can take.
  const std::string cached = line(0, 1100, 1, {1, 2, 3}) + line(1000000, 800, 160, {}) + line(1000020, 1536, 1, {1, 2, 4});
  CHECK(lanes(cached, 4) == 1);
  CHECK(lanes(cached, 5) == 2);
  // Two pages each, and six for the nodes of a draft each.
  const std::string drafting = line(0, 80, 800, {}) + line(20, 80, 800, {});
  CHECK(lanes(drafting, 15, 1) == 1);
  CHECK(lanes(drafting, 16, 1) == 2);
}

TEST_CASE("a step stays in its budget, and a prompt's pieces end anywhere") {
  Run run;
  run.text = line(0, 80, 1600, {}) + line(0, 80, 1600, {}) + line(0, 80, 1600, {});
  run.options.draft = 1;
  run.options.batch_tokens = 8;
  run.options.verify = 0;
  run.go();
  CHECK(run.engine().counts().most_tokens == 8);  // a draft of six nodes and two tokens, or less
  CHECK(run.engine().counts().drafts > 100);

  Run pieces;
  pieces.text = line(0, 16000, 1, {});
  pieces.options.piece = 64;
  pieces.options.verify = 0;
  Calls calls;
  std::vector<std::int64_t> lengths;
  std::set<std::int64_t> ends;
  const Watched watched([&](quire_op op, const void* args) {
    if (!calls.see(op, args) || calls.layer != 0) return;
    lengths.push_back(static_cast<std::int64_t>(calls.positions.at(0).size()));
    ends.insert((calls.positions.at(0).back() + 1) % 64);
  });
  pieces.go(Watched::backend());
  lengths.pop_back();  // what was left
  for (const std::int64_t length : lengths) CHECK((length > 64 - 64 / 4 - 1 && length <= 64));
  CHECK(ends.size() > 16);
}

TEST_CASE("drafts are counted as the calls show them") {
  Run run;
  run.text = line(0, 400, 3000, {1});
  run.options.draft = 1;
  Calls calls;
  std::int64_t drafts = 0, drafted = 0, accepted = 0, branches = 0, before = -1, computed = 0;
  const Watched watched([&](quire_op op, const void* args) {
    if (!calls.see(op, args) || calls.layer != 0) return;
    const std::vector<std::int64_t>&positions = calls.positions.at(0), &parents = calls.is_draft ? calls.parents.at(0) : positions;
    if (before >= 0) accepted += positions.front() - before;
    before = -1;
    if (!calls.is_draft) return;
    drafts += 1;
    drafted += static_cast<std::int64_t>(positions.size());
    before = positions.front();
    for (std::size_t n = 1; n < parents.size(); ++n)
      branches += std::count(parents.begin() + 1, parents.begin() + static_cast<std::ptrdiff_t>(n), parents[n]) > 0 ? 1 : 0;
    computed = std::max(computed, positions.back());
  });
  run.go(Watched::backend());
  const Counts& counts = run.engine().counts();
  if (before >= 0) accepted += run.trace.tokens() - before;  // the last draft's
  CHECK(counts.drafts == drafts);
  CHECK(counts.drafted_tokens == drafted);
  CHECK(counts.accepted_tokens == accepted);
  CHECK(counts.branches == branches);
  CHECK(branches > 10);
  CHECK(accepted > drafts);
  CHECK(counts.computed_tokens == run.trace.tokens());
  CHECK(run.engine().verified().mismatches.empty());
  CHECK(run.engine().verified().states == 3 * ((run.trace.tokens() + 63) / 64));
}

TEST_CASE("a row that is cleared names nothing") {
  Tables tables(2, 150, 64);  // the last block has 22 columns
  Page page;
  page.state = 9;
  for (std::int64_t slot = 640; slot < 704; ++slot) page.slots.push_back(slot);
  for (const std::int64_t row : {0, 1}) {
    for (const std::int64_t j : {0, 2}) tables.name_page(row, j, page);
  }
  CHECK(tables.slot(1, 63) == 703);
  CHECK(tables.slot(1, 64) == -1);
  CHECK(tables.slot(1, 149) == 640 + 21);
  CHECK(tables.state(1, 2) == 9);
  CHECK(tables.state(1, 1) == -1);
  tables.clear(1);
  for (std::int64_t p = 0; p < 150; ++p) CHECK(tables.slot(1, p) == -1);
  for (std::int64_t j = 0; j < 3; ++j) CHECK(tables.state(1, j) == -1);
  CHECK(tables.slot(0, 149) == 640 + 21);  // the other row stays
  CHECK(tables.state(0, 2) == 9);
}

TEST_CASE("books that don't come out even are told") {
  PageCache pages(3, 64);
  CHECK(pages.imbalance().empty());
  const PageId one = pages.take(), other = pages.take();
  CHECK(pages.imbalance() == "page 0 has 1 holders, and no request is left");
  CHECK(pages.share(one, {0, {7}}));
  pages.release({one, other});
  CHECK(pages.imbalance().empty());  // one is cached, the others are free
  std::swap(pages.page(0).slots[3], pages.page(2).slots[60]);
  std::swap(pages.page(0).state, pages.page(2).state);
  CHECK(pages.imbalance().empty());  // as a kept draft leaves them
  const std::int64_t slot = pages.page(2).slots[60];
  pages.page(2).slots[60] = pages.page(0).slots[5];
  CHECK(pages.imbalance() == "pages 0 and 2 have one slot, 5");
  pages.page(2).slots[60] = slot;
  pages.page(1).state = 2;
  CHECK(pages.imbalance() == "pages 0 and 1 have one state, 2");
  pages.page(1).state = 1;
  pages.page(1).holders = -1;
  CHECK(pages.imbalance() == "page 1 has -1 holders, and no request is left");
  pages.page(1).holders = 0;
  pages.page(1).is_shared = true;
  CHECK(pages.imbalance() == "page 1 counts as shared, and no key names it");
  pages.page(1).is_shared = false;
  pages.page(0).is_shared = false;
  CHECK(pages.imbalance() == "page 0 counts as not shared, and a key names it");
  pages.page(0).is_shared = true;
  CHECK(pages.imbalance().empty());
}

TEST_CASE("a run that can't go on says so") {
  // Four pages are needed and there are three; `settle`, which would refuse it, is not asked.
  Run run = one_request();
  run.prepare();
  run.options.pages = 3;
  Engine engine(run.options, run.trace, backend("reference"));
  engine.round();
  CHECK(engine.is_broken());
  REQUIRE(engine.verified().mismatches.size() == 1);
  CHECK(engine.verified().mismatches.front().what == "stuck");
  CHECK(engine.verified().mismatches.front().message ==
        "step 0: request 0 can't be admitted though none runs: 3 of 3 pages and 1 of 1 rows can be had");
}

}  // namespace
