// Randomness, numbers and tensors of the random cases.
#include <cmath>
#include <limits>
#include <utility>

#include "philox.h"
#include "random_cases_parts.h"

namespace quire_tests {
namespace {

std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 14695981039346656037ULL;  // FNV-1a
  for (const char letter : name) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 1099511628211ULL;
  }
  return hash;
}

// The side of the orthogonal array: a prime, so that lines of different slope meet once.
constexpr std::uint64_t side = 19;

// Integral numbers are written as integers: shorter, and readers must take both.
Json short_number(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e6 &&
      !(value == 0.0 && std::signbit(value))) {
    return static_cast<std::int64_t>(value);
  }
  return value;
}

double smallest(const std::string& dtype) {
  if (dtype == "f16") return 0x1p-24;
  if (dtype == "f64") return 3e-310;
  if (dtype == "f8_e4m3fn") return 0x1p-9;
  if (dtype == "f8_e5m2") return 0x1p-16;
  return 1.5e-40;
}

double greatest(const std::string& dtype) {
  if (dtype == "f8_e4m3fn") return 448;
  if (dtype == "f8_e5m2") return 57344;
  if (dtype == "f16") return 2048;
  return 100000;
}

Json draw_integer(Random& random, const std::string& dtype) {
  if (dtype == "bool") return random.chance(50);
  const bool is_signed = dtype != "u8";
  if (random.chance(15)) {
    if (dtype == "i8") return random.one_of(Ints{-128, 127});
    if (dtype == "u8") return random.one_of(Ints{0, 255});
    if (dtype == "i16") return random.one_of(Ints{-32768, 32767});
    if (dtype == "i32") return random.one_of(Ints{-2147483648LL, 2147483647LL});
    return random.one_of(
        Ints{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()});
  }
  return is_signed ? random.between(-9, 9) : random.between(0, 18);
}

}  // namespace

Random::Random(std::string_view family, std::uint64_t number)
    : key_(hash_name(family)), number_(number) {}

std::uint32_t Random::bits() {
  if (used_ == 4) {
    ready_ =
        quire::philox({static_cast<std::uint32_t>(block_), static_cast<std::uint32_t>(block_ >> 32),
                static_cast<std::uint32_t>(number_), static_cast<std::uint32_t>(number_ >> 32)},
               key_);
    ++block_;
    used_ = 0;
  }
  return ready_[used_++];
}

std::int64_t Random::between(std::int64_t low, std::int64_t high) {
  if (high <= low) return low;
  const auto options = static_cast<std::uint64_t>(high - low) + 1;
  return low + static_cast<std::int64_t>((bits() * options) >> 32);
}

bool Random::chance(int percent) { return between(0, 99) < percent; }

double Random::normal() {
  double sum = -6.0;
  for (int part = 0; part < 12; ++part) sum += bits() * 0x1p-32;
  return sum;
}

std::int64_t Random::pick(std::int64_t options) {
  const std::uint64_t column = column_++;
  if (column > side) return between(0, options - 1);
  // Any factor prime to the side serves: neighbours then differ in most columns.
  const std::uint64_t place = number_ % (side * side) * 137 % (side * side);
  const std::uint64_t across = place % side;
  const std::uint64_t down = place / side;
  // Column c is the family of lines of slope c; the last column is the vertical one.
  std::uint64_t value = column == side ? down : (across + column * down) % side;
  // Each run of 361 numbers shifts its columns, so that later runs meet other triples.
  const auto shift = quire::philox({static_cast<std::uint32_t>(number_ / (side * side)),
                             static_cast<std::uint32_t>(column), 1U, 0x70696b63U},
                            key_);
  value = (value + shift[0] % side) % side;
  return static_cast<std::int64_t>(value * static_cast<std::uint64_t>(options) / side);
}

Ints shuffled(Random& random, std::int64_t count) {
  Ints ids;
  for (std::int64_t id = 0; id < count; ++id) ids.push_back(id);
  random.shuffle(ids);
  return ids;
}

Style pick_style(Random& random) {
  return random.pick_of(
      std::vector<Style>{Style::exact, Style::exact, Style::normals, Style::normals, Style::mixed});
}

bool is_floating(const std::string& dtype) { return dtype[0] == 'f' || dtype == "bf16"; }

std::int64_t count_of(const Ints& shape) {
  std::int64_t count = 1;
  for (const std::int64_t axis : shape) count *= axis;
  return count;
}

Json draw_number(Random& random, const std::string& dtype, Style style) {
  if (!is_floating(dtype)) return draw_integer(random, dtype);
  if (style == Style::exact) {
    if (random.chance(15)) return random.one_of(std::vector<double>{0.5, -0.5, 0.25, 4});
    return random.between(-3, 3);
  }
  if (style == Style::mixed) {
    switch (random.between(0, 11)) {
      case 0:
        return -0.0;
      case 1:
        return random.one_of(std::vector<double>{1, -1}) * smallest(dtype);
      case 2:
        return short_number(random.one_of(std::vector<double>{16, -16, 7, 0.125}));
      case 3:
        return random.chance(8) ? short_number(greatest(dtype)) : Json(0);
      case 4:
        return random.between(-2, 2);
      default:
        break;
    }
  }
  return short_number(std::round(random.normal() * 1000) / 1000);
}

Json poison(Random& random, const std::string& dtype) {
  if (!is_floating(dtype)) return draw_integer(random, dtype);
  // f8_e4m3fn has no infinity.
  if (dtype == "f8_e4m3fn" || random.chance(50)) return "nan";
  return random.chance(50) ? "inf" : "-inf";
}

Json tensor(const std::string& dtype, const Ints& shape, Json data) {
  return {{"dtype", dtype}, {"shape", shape}, {"data", std::move(data)}};
}

Json draw_tensor(Random& random, const std::string& dtype, const Ints& shape, Style style) {
  Json data = Json::array();
  const std::int64_t count = count_of(shape);
  for (std::int64_t element = 0; element < count; ++element) {
    data.push_back(draw_number(random, dtype, style));
  }
  return tensor(dtype, shape, std::move(data));
}

Json nested(const Ints& shape, const Json& data) {
  if (shape.empty()) return data[0];
  Json level = data;
  for (std::size_t axis = shape.size() - 1; axis > 0; --axis) {
    Json grouped = Json::array();
    for (std::size_t first = 0; first < level.size();
         first += static_cast<std::size_t>(shape[axis])) {
      Json group = Json::array();
      for (std::int64_t place = 0; place < shape[axis]; ++place) {
        group.push_back(level[first + static_cast<std::size_t>(place)]);
      }
      grouped.push_back(std::move(group));
    }
    level = std::move(grouped);
  }
  return level;
}

Json index_tensor(Random& random, const std::vector<Ints>& rows) {
  if (!random.chance(8)) return rows;
  Json data = Json::array();
  for (const Ints& row : rows) {
    for (const std::int64_t value : row) data.push_back(value);
  }
  const auto width = static_cast<std::int64_t>(rows.empty() ? 0 : rows[0].size());
  return tensor("i64", {static_cast<std::int64_t>(rows.size()), width}, std::move(data));
}

Json integers(Random& random, const Ints& values) {
  const std::int64_t form = random.between(0, 9);
  bool narrow = true;
  for (const std::int64_t value : values) {
    narrow = narrow && value >= -2147483648LL && value <= 2147483647LL;
  }
  const Ints shape = {static_cast<std::int64_t>(values.size())};
  if (form < 2 && narrow) return tensor("i32", shape, values);
  if (form == 2) return tensor("i64", shape, values);
  return values;
}

void poison_elements(Random& random, Json& target, std::int64_t first, std::int64_t count) {
  const std::string dtype = target["dtype"];
  for (std::int64_t element = first; element < first + count; ++element) {
    target["data"][static_cast<std::size_t>(element)] = poison(random, dtype);
  }
}

void poison_row(Random& random, Json& target, std::int64_t row) {
  const Ints shape = target["shape"];
  const std::int64_t width = shape[0] == 0 ? 0 : count_of(shape) / shape[0];
  poison_elements(random, target, row * width, width);
}

void pad_rows(Random& random, Json& target) {
  const Ints shape = target["shape"];
  target["row_stride"] = count_of({shape.begin() + 1, shape.end()}) + random.between(1, 3);
}

Json finish(Random& random, Json subject) {
  for (auto& field : subject) {
    if (!field.is_object() || field.value("dtype", "") != "f32") continue;
    if (field.contains("row_stride") || !random.chance(15)) continue;
    const Ints shape = field["shape"];
    if (shape.empty() || count_of(shape) == 0) continue;
    field = nested(shape, field["data"]);
  }
  return subject;
}

}  // namespace quire_tests
