// Faults of extend and of attend.
#include "random_cases_bad.h"

namespace quire_tests {
namespace {

std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

// On a whole index a pool is handed back as it is, whatever it looks like.
bool is_whole(const Json& index) { return index.contains("whole") || index.contains("packed"); }

}  // namespace

const std::vector<Fault>& attention_faults() {
  static const std::vector<Fault> faults = {
      {"values of other lanes", draw_extend,
       [](Random&, Json& subject) -> std::string {
         resize_axis(subject["values"], 0, 1);
         return "values";
       }},
      {"values of other tokens", draw_extend,
       [](Random&, Json& subject) -> std::string {
         resize_axis(subject["values"], 1, 1);
         return "values";
       }},
      {"values of rank 1", draw_extend,
       [](Random&, Json& subject) -> std::string {
         subject["values"] = tensor("f32", {1}, {1});
         return "values";
       }},
      {"no pool", draw_extend,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         if (is_whole(index)) return "";
         subject.erase("pool");
         return "pool";
       }},
      {"a pool of wider rows", draw_extend,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         if (is_whole(index) || !is_tensor(subject, "pool") || subject["pool"]["shape"].size() < 2)
           return "";
         resize_axis(subject["pool"], 1, 1);
         return "pool";
       }},
      {"a pool of another dtype", draw_extend,
       [](Random&, Json& subject) -> std::string {
         Json& index = subject["index"];
         if (is_whole(index) || !is_tensor(subject, "pool")) return "";
         const bool narrow = subject["pool"]["dtype"] == "i8";
         retype(subject["pool"], narrow ? "u8" : "i8");
         return "pool";
       }},
      {"queries of rank 3", draw_attend,
       [](Random&, Json& subject) -> std::string {
         drop_axis(subject["q"]);
         subject["q"].erase("row_stride");
         return "q";
       }},
      {"queries of other lanes", draw_attend,
       [](Random&, Json& subject) -> std::string {
         resize_axis(subject["q"], 0, 1);
         return "q";
       }},
      {"queries that are integers", draw_attend,
       [](Random&, Json& subject) -> std::string {
         retype(subject["q"], "i32");
         return "q";
       }},
      {"queries that are fp8", draw_attend,
       [](Random&, Json& subject) -> std::string {
         retype(subject["q"], "f8_e5m2");
         return "q";
       }},
      {"query heads that are no multiple", draw_attend,
       [](Random&, Json& subject) -> std::string {
         if (subject["k"]["shape"][2] == 1) return "";
         resize_axis(subject["q"], 2, 1);
         subject.erase("sinks");
         return "q";
       }},
      {"keys of other tokens", draw_attend,
       [](Random&, Json& subject) -> std::string {
         resize_axis(subject["k"], 1, 1);
         return "k";
       }},
      {"keys of another width", draw_attend,
       [](Random&, Json& subject) -> std::string {
         resize_axis(subject["k"], 3, 1);
         return "k";
       }},
      {"values of other heads", draw_attend,
       [](Random&, Json& subject) -> std::string {
         resize_axis(subject["v"], 2, 1);
         return "v";
       }},
      {"values that are bool", draw_attend,
       [](Random&, Json& subject) -> std::string {
         retype(subject["v"], "bool");
         return "v";
       }},
      {"no pool", draw_attend,
       [](Random& random, Json& subject) -> std::string {
         Json& index = subject["index"];
         if (is_whole(index)) return "";
         const std::string name = random.chance(50) ? "k_pool" : "v_pool";
         subject.erase(name);
         return name;
       }},
      {"a pool of another width", draw_attend,
       [](Random& random, Json& subject) -> std::string {
         Json& index = subject["index"];
         const char* name = random.chance(50) ? "k_pool" : "v_pool";
         if (is_whole(index) || !is_tensor(subject, name)) return "";
         resize_axis(subject[name], random.chance(50) ? 1 : 2, 1);
         return name;
       }},
      {"a pool of another dtype", draw_attend,
       [](Random& random, Json& subject) -> std::string {
         Json& index = subject["index"];
         const char* name = random.chance(50) ? "k_pool" : "v_pool";
         if (is_whole(index) || !is_tensor(subject, name)) return "";
         retype(subject[name], subject[name]["dtype"] == "f32" ? "f16" : "f32");
         return name;
       }},
      {"a softcap of nothing", draw_attend,
       [](Random& random, Json& subject) -> std::string {
         subject["softcap"] = random.between(-2, 0);
         return "softcap";
       }},
      {"sinks of other heads", draw_attend,
       [](Random&, Json& subject) -> std::string {
         const std::int64_t heads = subject["q"]["shape"][2];
         subject["sinks"] = tensor("f32", {heads + 1}, Json(at(heads + 1), Json(1)));
         return "sinks";
       }},
      {"sinks that are integers", draw_attend,
       [](Random&, Json& subject) -> std::string {
         const std::int64_t heads = subject["q"]["shape"][2];
         subject["sinks"] = tensor("i32", {heads}, Json(at(heads), Json(1)));
         return "sinks";
       }},
  };
  return faults;
}

}  // namespace quire_tests
