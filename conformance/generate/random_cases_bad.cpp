// Cases with one fault each: how one is chosen, and the faults of the case format itself.
#include "random_cases_bad.h"

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

Json draw_any(Random& random) {
  using Draw = Json (*)(Random&);
  const std::vector<Draw> draws = {draw_index_case, draw_extend, draw_attend, draw_gdn_prefill,
                                   draw_gdn_decode, draw_slots,  draw_paged,  draw_verify,
                                   draw_page_table, draw_check};
  return random.one_of(draws)(random);
}

Json draw_with_tensors(Random& random) {
  using Draw = Json (*)(Random&);
  const std::vector<Draw> draws = {draw_extend,     draw_attend, draw_gdn_prefill,
                                   draw_gdn_decode, draw_paged,  draw_verify};
  return random.one_of(draws)(random);
}

// A field whose tensor stands in the object form.
std::string any_tensor(Random& random, const Json& subject) {
  std::vector<std::string> names;
  for (const auto& [name, field] : subject.items()) {
    if (field.is_object() && field.contains("dtype")) names.push_back(name);
  }
  return names.empty() ? "" : random.one_of(names);
}

std::string any_field(Random& random, const Json& subject) {
  std::vector<std::string> names;
  for (const auto& [name, field] : subject.items()) {
    // Those that the laws let a call leave out are no fault when missing.
    for (const char* needed :
         {"index", "values", "q", "k", "v", "cu_seqlens", "state_pool", "page_indices",
          "page_indptr", "page_size", "last_page_len", "state_slots"}) {
      if (name == needed) names.push_back(name);
    }
  }
  return names.empty() ? "" : random.one_of(names);
}

}  // namespace

Ints read_integers(const Json& field) {
  return field.is_array() ? field.get<Ints>() : field.at("data").get<Ints>();
}

void resize_axis(Json& target, std::size_t axis, std::int64_t change) {
  Ints shape = target["shape"];
  shape[axis] += change;
  target["shape"] = shape;
  target["data"] = Json::array();
  for (std::int64_t element = 0; element < count_of(shape); ++element) target["data"].push_back(1);
  target.erase("row_stride");
}

void drop_axis(Json& target) {
  Ints shape = target["shape"];
  const std::int64_t last = shape.back();
  shape.pop_back();
  shape.back() *= last;
  target["shape"] = shape;
}

void retype(Json& target, const std::string& dtype) {
  target["dtype"] = dtype;
  for (Json& value : target["data"]) value = dtype == "bool" ? Json(true) : Json(1);
}

bool is_tensor(const Json& subject, const char* name) {
  return subject.contains(name) && subject[name].is_object() && subject[name].contains("dtype");
}

const std::vector<Fault>& form_faults() {
  static const std::vector<Fault> faults = {
      {"no such op", draw_any,
       [](Random&, Json& subject) -> std::string {
         subject["op"] = "gdn_dream";
         return "op";
       }},
      {"no op", draw_any,
       [](Random&, Json& subject) -> std::string {
         subject.erase("op");
         return "op";
       }},
      {"an unknown key", draw_any,
       [](Random& random, Json& subject) -> std::string {
         const std::string key = random.one_of(
             std::vector<std::string>{"cu_seqlen", "Scale", "state", "windows", "q_pool"});
         subject[key] = 1;
         return key;
       }},
      {"a format of another version", draw_any,
       [](Random& random, Json& subject) -> std::string {
         subject["format"] = random.one_of(Ints{0, 2});
         return "format";
       }},
      {"laws of another version", draw_any,
       [](Random&, Json& subject) -> std::string {
         subject["semantics"] = 2;
         return "semantics";
       }},
      {"a field that is missing", draw_any,
       [](Random& random, Json& subject) -> std::string {
         const std::string name = any_field(random, subject);
         if (!name.empty()) subject.erase(name);
         return name;
       }},
      {"a field of the wrong kind", draw_any,
       [](Random& random, Json& subject) -> std::string {
         const std::string name = any_field(random, subject);
         if (!name.empty()) subject[name] = true;
         return name;
       }},
      {"a dtype of no tensor", draw_with_tensors,
       [](Random& random, Json& subject) -> std::string {
         const std::string name = any_tensor(random, subject);
         if (!name.empty()) {
           subject[name]["dtype"] = random.one_of(std::vector<std::string>{"f128", "float32", ""});
         }
         return name;
       }},
      {"data of the wrong count", draw_with_tensors,
       [](Random& random, Json& subject) -> std::string {
         const std::string name = any_tensor(random, subject);
         if (!name.empty()) subject[name]["data"].push_back(1);
         return name;
       }},
      {"a row stride below the row", draw_with_tensors,
       [](Random& random, Json& subject) -> std::string {
         const std::string name = any_tensor(random, subject);
         if (name.empty()) return name;
         const Ints shape = subject[name]["shape"];
         if (count_of(shape) == 0) return "";
         const std::int64_t row = count_of(shape) / shape[0];
         subject[name]["row_stride"] = row - 1;
         return name;
       }},
      {"a ragged list", draw_extend,
       [](Random&, Json& subject) -> std::string {
         subject["values"] = {{1, 2}, {1}};
         return "values";
       }},
  };
  return faults;
}

Json draw_bad(Random& random, std::uint64_t number) {
  std::vector<Fault> faults;
  for (const auto* part :
       {&form_faults(), &index_faults(), &attention_faults(), &rule_faults(), &page_faults()}) {
    faults.insert(faults.end(), part->begin(), part->end());
  }
  const Fault& fault = faults[at(static_cast<std::int64_t>(number % faults.size()))];
  while (true) {
    // A stream of its own per try, so that the base's layout of features moves on.
    const std::uint64_t high = random.bits();
    Random fresh("bad base", (high << 32) | random.bits());
    Json subject = fault.base(fresh);
    const std::string argument = fault.apply(random, subject);
    if (argument.empty()) continue;
    subject["id"] = argument + ": " + fault.reason;
    return subject;
  }
}

}  // namespace quire_tests
