// What the parts of the random case generator share: randomness, values and tensors.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace quire_tests {

using Json = nlohmann::json;
using Ints = std::vector<std::int64_t>;

/// Philox 4x32-10 keyed by the family's name, counted by the case's number. No std distribution
/// is used: their output differs between libraries.
class Random {
 public:
  Random(std::string_view family, std::uint64_t number);

  std::uint32_t bits();
  /// Uniform in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high);
  bool chance(int percent);
  /// Near a standard normal (a sum of twelve uniforms), so that no libm function is asked.
  double normal();

  /// A choice among at most 19 options from an orthogonal array over the case's number: any two
  /// of a family's first 20 choices take every pair of options in each 361 numbers. A family
  /// makes these choices first, always all of them and in one order.
  std::int64_t pick(std::int64_t options);
  bool pick_bool() { return pick(2) == 1; }

  template <typename T>
  const T& pick_of(const std::vector<T>& options) {
    return options[static_cast<std::size_t>(pick(static_cast<std::int64_t>(options.size())))];
  }
  template <typename T>
  const T& one_of(const std::vector<T>& options) {
    return options[static_cast<std::size_t>(
        between(0, static_cast<std::int64_t>(options.size()) - 1))];
  }
  template <typename T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t left = items.size(); left > 1; --left) {
      std::swap(items[left - 1],
                items[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(left) - 1))]);
    }
  }

 private:
  std::uint64_t key_;
  std::uint64_t number_;
  std::uint64_t block_ = 0;
  std::array<std::uint32_t, 4> ready_{};
  std::size_t used_ = 4;
  std::uint64_t column_ = 0;
};

/// 0 .. count-1 in random order.
Ints shuffled(Random& random, std::int64_t count);

/// How the numbers of a case are drawn: in `exact`, integers and powers of two so small that sums
/// are exact and any difference is an error of logic.
enum class Style { exact, normals, mixed };

Style pick_style(Random& random);
bool is_floating(const std::string& dtype);
std::int64_t count_of(const Ints& shape);

/// One number for a dtype, in range for it.
Json draw_number(Random& random, const std::string& dtype, Style style);
/// NaN or an infinity where the dtype has one, else a conspicuous number.
Json poison(Random& random, const std::string& dtype);

/// The object form.
Json tensor(const std::string& dtype, const Ints& shape, Json data);
Json draw_tensor(Random& random, const std::string& dtype, const Ints& shape, Style style);
/// The nested list form of flat row-major data.
Json nested(const Ints& shape, const Json& data);
/// An int64 tensor of an index: nearly always the nested form.
Json index_tensor(Random& random, const std::vector<Ints>& rows);
/// A rank-1 integer tensor of laws E and F: the nested form, or int32 or int64 by name.
Json integers(Random& random, const Ints& values);

/// Poisons `count` elements from `first` of a tensor in the object form.
void poison_elements(Random& random, Json& target, std::int64_t first, std::int64_t count);
/// Poisons row `row` of axis 0.
void poison_row(Random& random, Json& target, std::int64_t row);
/// Gives a tensor in the object form a padded row stride.
void pad_rows(Random& random, Json& target);
/// Writes some float32 tensors of a case as nested lists.
Json finish(Random& random, Json subject);

// The families, one function each; random_cases.cpp joins them.
Json draw_index_case(Random& random);
Json draw_extend(Random& random);
Json draw_attend(Random& random);
Json draw_gdn_prefill(Random& random);
Json draw_gdn_decode(Random& random);
Json draw_slots(Random& random);
Json draw_paged(Random& random);
Json draw_verify(Random& random);
Json draw_page_table(Random& random);
Json draw_check(Random& random);
Json draw_bad(Random& random, std::uint64_t number);
Json draw_program(Random& random);
Json draw_steps(Random& random);

}  // namespace quire_tests
