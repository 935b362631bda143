// Random programs: histories of calls on one state pool, and ops that feed each other.
#include <algorithm>

#include "random_cases_engine.h"
#include "random_cases_gdn.h"

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

Json reference(const std::string& step, const std::string& field) {
  return {{"ref", step + "." + field}};
}

RuleFeatures draw_rule(Random& random) {
  RuleFeatures rule;
  rule.dtype = random.one_of(std::vector<std::string>{"f32", "bf16", "f16", "f64"});
  rule.state_dtype =
      random.one_of(std::vector<std::string>{"f32", "f32", "bf16", "f16", "f8_e4m3fn"});
  rule.style = random.one_of(std::vector<Style>{Style::exact, Style::normals});
  rule.heads = random.between(0, 4);
  rule.gates = random.between(0, 3);
  rule.l2norm = 1;  // said, as prefill and decode have other defaults
  rule.scale = random.between(0, 2);
  return rule;
}

// A prompt fed in pieces, decoded, verified, one path kept by naming its slot, decoded on.
Json draw_rows_program(Random& random) {
  const RuleFeatures rule = draw_rule(random);
  const Heads heads = draw_heads(random, rule, true);
  const std::int64_t batch = random.between(1, 3);
  const std::int64_t drafted = random.between(2, 3);
  const std::int64_t rows = batch * (drafted + 3);
  Ints free = shuffled(random, rows);
  const auto take = [&free] {
    const std::int64_t row = free.back();
    free.pop_back();
    return row;
  };
  Json steps = Json::array();
  Ints read(at(batch), -1);
  std::int64_t length = 0;
  const std::int64_t pieces = random.between(1, 3);
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    Json step = {{"op", "gdn_prefill"}, {"as", "piece" + std::to_string(piece)}};
    const std::int64_t tokens = random.between(1, 3);
    length += tokens;
    Ints bounds;
    for (std::int64_t lane = 0; lane <= batch; ++lane) bounds.push_back(lane * tokens);
    add_tokens(random, rule, heads, {batch * tokens}, true, false, step);
    Ints stored = read;
    // The first piece starts from zero; later ones go on in place or move on.
    for (std::int64_t& row : stored) {
      if (row < 0) row = take();
    }
    step["cu_seqlens"] = bounds;
    step["state_indices"] = read;
    step["output_state_indices"] = stored;
    step["output_state"] = "initial_state";
    step["output_final_state"] = true;
    step["initial_state"] = piece == 0
                                ? draw_states(random, rule, heads, rows, {}, true)
                                : reference("piece" + std::to_string(piece - 1), "output_state");
    read = stored;
    steps.push_back(step);
  }
  const std::string last = "piece" + std::to_string(pieces - 1);
  const auto decode = [&](const std::string& name, const Json& pool, bool moves) {
    Json step = {{"op", "gdn_decode"}, {"as", name}, {"state_pool", pool}, {"state_indices", read}};
    add_tokens(random, rule, heads, {batch, 1}, false, false, step);
    if (moves) {
      Ints stored;
      for (std::int64_t lane = 0; lane < batch; ++lane) stored.push_back(take());
      step["output_state_indices"] = stored;
      free.insert(free.begin(), read.begin(), read.end());
      read = stored;
    }
    ++length;
    steps.push_back(step);
  };
  decode("decode", reference(last, "output_state"), random.chance(50));

  Json verify = {{"op", "gdn_verify"}, {"as", "verify"}};
  std::vector<Ints> pos(at(batch));
  std::vector<Ints> slots(at(batch));
  std::vector<Ints> table(at(batch));
  std::vector<Ints> none(at(batch));
  Json sees = Json::array();
  Ints kept;
  for (std::int64_t lane = 0; lane < batch; ++lane) {
    Ints parents;
    Json rows_seen = Json::array();
    for (std::int64_t node = 0; node < drafted; ++node) {
      parents.push_back(random.between(-1, node - 1));
      pos[at(lane)].push_back(parents.back() < 0 ? length : pos[at(lane)][at(parents.back())] + 1);
      slots[at(lane)].push_back(take());
      none[at(lane)].push_back(-1);
      Json seen(at(drafted), Json(false));
      for (std::int64_t other = node; other >= 0; other = parents[at(other)])
        seen[at(other)] = true;
      rows_seen.push_back(seen);
    }
    table[at(lane)].push_back(-1);
    sees.push_back(rows_seen);
    kept.push_back(random.chance(20) ? read[at(lane)]  // no token of the draft is kept
                                     : random.one_of(slots[at(lane)]));
  }
  verify["index"] = {{"pos", pos},
                     {"table", table},
                     {"then", Json::array({{{"draft", {{"slots", none}, {"sees", sees}}}}})}};
  add_tokens(random, rule, heads, {batch, drafted}, false, false, verify);
  verify["state_pool"] = reference("decode", "state_pool");
  verify["state_indices"] = read;
  verify["state_slots"] = slots;
  steps.push_back(verify);
  read = kept;
  decode("after", reference("verify", "state_pool"), false);
  return {{"steps", steps}};
}

// Paged: a prompt in two pieces about a page's end, a second sequence on its full page, decoding.
Json draw_paged_program(Random& random) {
  RuleFeatures rule = draw_rule(random);
  rule.heads = 0;
  const Heads heads = draw_heads(random, rule, true);
  const Ints pages = shuffled(random, 6);
  Json steps = Json::array();
  Json pool = draw_states(random, rule, heads, 6, {}, true);
  // Each call: the new tokens of each sequence, its pages and its tokens after the call.
  const auto call = [&](bool decodes, const Ints& fresh, const std::vector<Ints>& owned,
                        const Ints& totals) {
    const std::string name = "call" + std::to_string(steps.size());
    Json step = {{"op", decodes ? "gdn_decode_paged" : "gdn_prefill_paged"}, {"as", name}};
    Ints bounds = {0};
    Ints indptr = {0};
    Ints indices;
    Ints last;
    for (std::size_t place = 0; place < fresh.size(); ++place) {
      bounds.push_back(bounds.back() + fresh[place]);
      indices.insert(indices.end(), owned[place].begin(), owned[place].end());
      indptr.push_back(static_cast<std::int64_t>(indices.size()));
      last.push_back(totals[place] - (static_cast<std::int64_t>(owned[place].size()) - 1) * 64);
    }
    const auto count = static_cast<std::int64_t>(fresh.size());
    add_tokens(random, rule, heads, decodes ? Ints{count, 1} : Ints{bounds.back()}, !decodes, true,
               step);
    if (!decodes) step["cu_seqlens"] = bounds;
    step["page_indices"] = indices;
    step["page_indptr"] = indptr;
    step["page_size"] = 64;
    step["last_page_len"] = last;
    step["state_pool"] = pool;
    pool = reference(name, "state_pool");
    steps.push_back(step);
  };
  const std::int64_t first = random.between(58, 64);
  const std::int64_t second = 65 - first + random.between(0, 3);
  std::int64_t length = first + second;
  call(false, {first}, {{pages[0]}}, {first});
  call(false, {second}, {{pages[0], pages[1]}}, {length});
  // The second sequence shares the full page and brings its own tokens; the first may wait.
  const std::int64_t own = random.between(1, 3);
  if (random.chance(50)) {
    call(false, {own}, {{pages[0], pages[2]}}, {64 + own});
  } else {
    call(false, {own, 0}, {{pages[0], pages[2]}, {pages[0], pages[1]}}, {64 + own, length});
  }
  const std::int64_t decodes = random.between(1, 2);
  for (std::int64_t turn = 1; turn <= decodes; ++turn) {
    call(true, {1, 1}, {{pages[0], pages[1]}, {pages[0], pages[2]}},
         {length + turn, 64 + own + turn});
  }
  return {{"steps", steps}};
}

// The rows of a page table computed once, then named by the op that they were made for (E11).
Json draw_slots_program(Random& random) {
  const RuleFeatures rule = draw_rule(random);
  PageFeatures features;
  features.shared = features.padded = true;
  features.strange = random.chance(50);
  const PagePlan plan = draw_pages(random, features);
  const Heads heads = draw_heads(random, rule, true);
  Json slots = {{"op", "gdn_prefill_slots"}, {"as", "slots"}};
  add_pages(random, plan, true, slots);
  Json prefill = {{"op", "gdn_prefill"},
                  {"as", "prefill"},
                  {"cu_seqlens", slots["cu_seqlens"]},
                  {"output_state", "initial_state"},
                  {"output_final_state", true},
                  {"state_checkpoints", "initial_state"},
                  {"checkpoint_every_n_tokens", plan.page_size},
                  {"checkpoint_state_indices", slots["page_indices"]}};
  for (const char* name :
       {"state_indices", "output_state_indices", "prefix_lens", "checkpoint_cu_starts"}) {
    prefill[name] = reference("slots", name);
  }
  add_tokens(random, rule, heads, {plan.tokens()}, true, false, prefill);
  prefill["initial_state"] = draw_states(random, rule, heads, plan.pages, plan.read, true);
  return {{"steps", Json::array({slots, prefill})}};
}

// One index serves both kinds of layer: its pages feed the recurrent one (F1).
Json draw_hybrid_program(Random& random) {
  const RuleFeatures rule = draw_rule(random);
  PageFeatures features;
  features.shared = random.chance(50);
  features.strange = random.chance(50);
  PagePlan plan = draw_pages(random, features);
  while (plan.sequences() == 0 || plan.tokens() == 0) plan = draw_pages(random, features);
  const Heads heads = draw_heads(random, rule, true);
  std::int64_t seq = 1;
  std::int64_t width = 1;
  for (std::int64_t lane = 0; lane < plan.sequences(); ++lane) {
    seq = std::max(seq, plan.cu_seqlens[at(lane + 1)] - plan.cu_seqlens[at(lane)]);
    width = std::max(width, plan.indptr[at(lane + 1)] - plan.indptr[at(lane)]);
  }
  std::vector<Ints> pos;
  std::vector<Ints> table;
  std::vector<Ints> blocks;
  for (std::int64_t lane = 0; lane < plan.sequences(); ++lane) {
    const std::int64_t fresh = plan.cu_seqlens[at(lane + 1)] - plan.cu_seqlens[at(lane)];
    Ints tokens(at(seq - fresh), -1);
    for (std::int64_t token = 0; token < fresh; ++token) {
      tokens.push_back(plan.prefix[at(lane)] + token);
    }
    pos.push_back(tokens);
    table.push_back({lane});
    Ints ids(plan.indices.begin() + plan.indptr[at(lane)],
             plan.indices.begin() + plan.indptr[at(lane + 1)]);
    ids.resize(at(width), -1);
    blocks.push_back(ids);
  }
  const Json index = {{"pos", pos},
                      {"table", table},
                      {"every", Json::array({{{"m", plan.page_size}, {"blocks", blocks}}})}};
  const Json pages = {
      {"op", "page_table"}, {"as", "pages"}, {"index", index}, {"page_size", plan.page_size}};
  Json prefill = {{"op", "gdn_prefill_paged"}, {"as", "prefill"}, {"page_size", plan.page_size}};
  for (const char* name : {"cu_seqlens", "page_indices", "page_indptr", "last_page_len"}) {
    prefill[name] = reference("pages", name);
  }
  add_tokens(random, rule, heads, {plan.tokens()}, true, false, prefill);
  prefill["state_pool"] = draw_states(random, rule, heads, plan.pages, plan.read, true);
  return {{"steps", Json::array({pages, prefill})}};
}

}  // namespace

Json draw_program(Random& random) {
  switch (random.pick(8)) {
    case 0:
      return draw_rows_program(random);
    case 1:
      return draw_rows_program(random);
    case 2:
      return draw_paged_program(random);
    case 3:
      return draw_slots_program(random);
    case 4:
      return draw_hybrid_program(random);
    case 5:
      return draw_engine(random, false);
    default:
      return draw_engine(random, true);
  }
}

}  // namespace quire_tests
