// Faults of indices and of their builders.
#include "random_cases_bad.h"
#include "random_cases_index.h"

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

// An index of one form, without builders of features that would be in a fault's way.
template <Form form, Reader reader>
Json draw_formed(Random& random) {
  IndexFeatures features;
  features.form = form;
  features.reader = reader;
  features.padding = static_cast<int>(random.between(0, 3));
  features.window = static_cast<int>(random.between(0, 2));
  const std::string op = random.one_of(std::vector<std::string>{"index", "mask", "positions"});
  return {{"op", op}, {"index", draw_index(random, features).json}};
}

template <Reader reader>
Json draw_any_tabled(Random& random) {
  const std::int64_t form = random.between(0, 2);
  if (form == 0) return draw_formed<Form::plain, reader>(random);
  if (form == 1) return draw_formed<Form::with_row, reader>(random);
  return draw_formed<Form::rows, reader>(random);
}

template <Reader reader>
Json draw_any_whole(Random& random) {
  if (random.chance(50)) return draw_formed<Form::whole, reader>(random);
  return draw_formed<Form::packed, reader>(random);
}

constexpr auto made = draw_formed<Form::plain, Reader::positions>;
constexpr auto with_row = draw_formed<Form::with_row, Reader::positions>;
constexpr auto by_rows = draw_formed<Form::rows, Reader::positions>;
constexpr auto whole = draw_formed<Form::whole, Reader::positions>;
constexpr auto packed = draw_formed<Form::packed, Reader::positions>;

void then(Json& subject, const char* builder, const Json& value) {
  subject["index"]["then"].push_back({{builder, value}});
}

std::int64_t size_of(const Json& list) { return static_cast<std::int64_t>(list.size()); }

// B and S of an index that no `advance` has changed.
Ints lanes_of(const Json& index) {
  if (index.contains("pos")) {
    if (index["pos"].is_object()) return index["pos"]["shape"];
    return {size_of(index["pos"]), size_of(index["pos"][0])};
  }
  if (index.contains("rows")) {
    std::int64_t seq = 0;
    for (const std::int64_t length : index["rows"]["lens"].get<Ints>()) seq = std::max(seq, length);
    return {size_of(index["rows"]["lens"]), seq};
  }
  if (index.contains("whole")) return {index["whole"]["batch"], index["whole"]["seq"]};
  return {size_of(index["packed"]["lens"]), index["packed"]["seq"]};
}

Json draft_of(std::int64_t batch, std::int64_t seq, std::int64_t seen) {
  const Json sees(at(seq), Json(at(seen), Json(true)));
  return {{"slots", Json(at(batch), Json(at(seq), Json(-1)))}, {"sees", Json(at(batch), sees)}};
}

Json columns_of(std::int64_t batch, std::int64_t seq, std::int64_t count) {
  if (count == 0) return tensor("i64", {batch, seq, 0}, Json::array());
  return Json(at(batch), Json(at(seq), Json(at(count), Json(0))));
}

std::string draft_rejected(Random&, Json& subject) {
  const Ints lanes = lanes_of(subject["index"]);
  then(subject, "draft", draft_of(lanes[0], lanes[1], lanes[1]));
  return "draft";
}

}  // namespace

const std::vector<Fault>& index_faults() {
  static const std::vector<Fault> faults = {
      {"none of the four forms", made,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index = Json::object();
         return "index";
       }},
      {"positions of rank 1", with_row,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["pos"] = {0, 1};
         return "pos";
       }},
      {"positions that are not int64", made,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         if (!index["pos"].is_array()) return "";
         const Ints lanes = lanes_of(index);
         index["pos"] = tensor("i32", lanes, Json(at(lanes[0] * lanes[1]), Json(0)));
         return "pos";
       }},
      {"an empty axis of positions", made,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["pos"] = tensor("i64", {lanes_of(index)[0], 0}, Json::array());
         return "pos";
       }},
      {"a table of rank 1", with_row,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["table"] = {0, 1};
         return "table";
       }},
      {"an empty axis of the table", made,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["table"] = tensor("i64", {lanes_of(index)[0], 0}, Json::array());
         return "table";
       }},
      {"rows that are not the lanes", made,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         if (!index["table"].is_array() || index.contains("every")) return "";
         index["table"].push_back(Json(index["table"][0]));
         return "table";
       }},
      {"a row too many lanes", with_row,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         if (!index["row"].is_array()) return "";
         index["row"].push_back(0);
         return "row";
       }},
      {"blocks of one position", with_row,
       [](Random& random, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["every"] =
             Json::array({{{"m", random.between(-1, 1)}, {"blocks", Json(index["table"])}}});
         return "every";
       }},
      {"a block size twice", with_row,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         const Json entry = {{"m", 2}, {"blocks", Json(index["table"])}};
         index["every"] = {entry, entry};
         return "every";
       }},
      {"block tables of other rows", with_row,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         if (!index["table"].is_array()) return "";
         Json blocks = index["table"];
         blocks.push_back(Json(blocks[0]));
         index["every"] = Json::array({{{"m", 2}, {"blocks", blocks}}});
         return "every";
       }},
      {"no column", by_rows,
       [](Random& random, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["rows"]["context"] = random.between(-1, 0);
         return "context";
       }},
      {"a negative length", by_rows,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["rows"]["lens"].push_back(-1);
         return "lens";
       }},
      {"a length above the context", by_rows,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["rows"]["lens"][0] = index["rows"]["context"].get<std::int64_t>() + 1;
         return "lens";
       }},
      {"all lengths zero", by_rows,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["rows"]["lens"] = {0, 0};
         return "lens";
       }},
      {"no lane", by_rows,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["rows"]["lens"] = Json::array();
         return "lens";
       }},
      {"blocks of one position", by_rows,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["rows"]["every"] = {1};
         return "every";
       }},
      {"a block size twice", by_rows,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["rows"]["every"] = {3, 3};
         return "every";
       }},
      {"no lane", whole,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["whole"] = {{"batch", 0}, {"seq", 2}};
         return "batch";
       }},
      {"no token", whole,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["whole"] = {{"batch", 2}, {"seq", 0}};
         return "seq";
       }},
      {"a length that does not fit", whole,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["whole"] = {{"batch", 2}, {"seq", 3}, {"lens", {1, 4}}};
         return "lens";
       }},
      {"a negative length", whole,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["whole"] = {{"batch", 2}, {"seq", 3}, {"lens", {-1, 3}}};
         return "lens";
       }},
      {"lengths of other lanes", whole,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["whole"] = {{"batch", 2}, {"seq", 3}, {"lens", {1}}};
         return "lens";
       }},
      {"no token", packed,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["packed"]["seq"] = 0;
         return "seq";
       }},
      {"no lane", packed,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["packed"]["lens"] = Json::array();
         return "lens";
       }},
      {"a negative length", packed,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["packed"]["lens"][0].push_back(-1);
         return "lens";
       }},
      {"lengths past seq", packed,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         index["packed"]["lens"][0].push_back(index["packed"]["seq"].get<std::int64_t>() + 1);
         return "lens";
       }},
      {"a window of no position", draw_any_tabled<Reader::draft>,
       [](Random& random, Json& subject) -> std::string {
         then(subject, "window", random.between(-2, 0));
         return "window";
       }},
      {"a window of no position", draw_any_whole<Reader::select>,
       [](Random&, Json& subject) -> std::string {
         then(subject, "window", 0);
         return "window";
       }},
      {"a selection of other lanes", draw_any_tabled<Reader::positions>,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         const Ints lanes = lanes_of(index);
         then(subject, "select", columns_of(lanes[0] + 1, lanes[1], 2));
         return "select";
       }},
      {"a selection of nothing", draw_any_tabled<Reader::blocks>,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         const Ints lanes = lanes_of(index);
         then(subject, "select", columns_of(lanes[0], lanes[1], 0));
         return "select";
       }},
      {"a selection on a draft", draw_any_tabled<Reader::draft>,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         const Ints lanes = lanes_of(index);
         then(subject, "select", columns_of(lanes[0], lanes[1], 1));
         return "select";
       }},
      {"a draft on a whole index", draw_any_whole<Reader::positions>, draft_rejected},
      {"a draft on blocks", draw_any_tabled<Reader::blocks>, draft_rejected},
      {"a draft on a selection", draw_any_tabled<Reader::select>, draft_rejected},
      {"slots of other tokens", draw_any_tabled<Reader::positions>,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         const Ints lanes = lanes_of(index);
         Json draft = draft_of(lanes[0], lanes[1], lanes[1]);
         draft["slots"] = draft_of(lanes[0], lanes[1] + 1, 1)["slots"];
         then(subject, "draft", draft);
         return "slots";
       }},
      {"pairs of other tokens", draw_any_tabled<Reader::positions>,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         const Ints lanes = lanes_of(index);
         then(subject, "draft", draft_of(lanes[0], lanes[1], lanes[1] + 1));
         return "sees";
       }},
      {"pairs that are not bool", draw_any_tabled<Reader::positions>,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         const Ints lanes = lanes_of(index);
         Json draft = draft_of(lanes[0], lanes[1], lanes[1]);
         draft["sees"] = tensor("i64", {lanes[0], lanes[1], lanes[1]},
                                Json(at(lanes[0] * lanes[1] * lanes[1]), Json(1)));
         then(subject, "draft", draft);
         return "sees";
       }},
      {"blocks of no position", draw_any_whole<Reader::positions>,
       [](Random& random, Json& subject) -> std::string {
         then(subject, "every", random.between(-3, 0));
         return "every";
       }},
      {"no blocks of this size", draw_any_tabled<Reader::positions>,
       [](Random&, Json& subject) -> std::string {
         then(subject, "every", 7);
         return "every";
       }},
      {"blocks of another size", draw_any_tabled<Reader::blocks>,
       [](Random& random, Json& subject) -> std::string {
         then(subject, "every", random.one_of(Ints{1, 7}));
         return "every";
       }},
      {"blocks of another size", draw_formed<Form::whole, Reader::blocks>,
       [](Random&, Json& subject) -> std::string {
         then(subject, "every", 9);
         return "every";
       }},
      {"blocks of a selection", draw_formed<Form::whole, Reader::select>,
       [](Random&, Json& subject) -> std::string {
         then(subject, "every", 2);
         return "every";
       }},
      {"blocks of a selection", draw_formed<Form::rows, Reader::select>,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         if (!index["rows"].contains("every")) return "";
         then(subject, "every", index["rows"]["every"][0]);
         return "every";
       }},
      {"blocks of a draft", draw_formed<Form::rows, Reader::draft>,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         if (!index["rows"].contains("every")) return "";
         then(subject, "every", index["rows"]["every"][0]);
         return "every";
       }},
      {"blocks of packed sequences", packed,
       [](Random&, Json& subject) -> std::
                                      string {
                                        then(subject, "every", 2);
                                        return "every";
                                      }},
      {"the next token of a whole index", draw_any_whole<Reader::positions>,
       [](Random&, Json& subject) -> std::string {
         then(subject, "advance", true);
         return "advance";
       }},
  };
  return faults;
}

}  // namespace quire_tests
