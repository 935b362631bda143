// JSON whose numbers are rounded once.
#include "exact_json.h"

#include <quire/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

namespace quire::conformance {

using nlohmann::json;

namespace {

// A positive decimal as digits without leading or trailing zeros and the power of ten of the first.
struct Decimal {
  std::string digits;
  std::int64_t exponent = 0;
};

Decimal decimal_of(std::string_view text) {
  Decimal decimal;
  std::int64_t point = -1;
  std::size_t i = 0;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') point = static_cast<std::int64_t>(decimal.digits.size());
    else if (text[i] >= '0' && text[i] <= '9') decimal.digits += text[i];
  }
  if (point < 0) point = static_cast<std::int64_t>(decimal.digits.size());
  const std::int64_t power = i < text.size() ? std::strtoll(std::string(text.substr(i + 1)).c_str(), nullptr, 10) : 0;
  const std::size_t lead = std::min(decimal.digits.find_first_not_of('0'), decimal.digits.size());
  decimal.exponent = point + power - static_cast<std::int64_t>(lead);
  decimal.digits.erase(0, lead);
  decimal.digits.erase(decimal.digits.find_last_not_of('0') + 1);
  return decimal;
}

// -1, 0, 1: how the text's magnitude compares with the float64's exact one.
int compare_magnitude(std::string_view text, double number) {
  const Decimal given = decimal_of(text);
  // Every digit of the float64. Between 2^-65 and 2^64 it has at most 20 before the point and 117 behind it.
  int exponent = 0;
  std::frexp(number, &exponent);
  const Decimal kept = decimal_of(fmt::format("{:.{}e}", std::fabs(number), std::abs(exponent) <= 64 ? 140 : 1100));
  if (given.digits.empty() || kept.digits.empty()) return static_cast<int>(!given.digits.empty()) - static_cast<int>(!kept.digits.empty());
  if (given.exponent != kept.exponent) return given.exponent < kept.exponent ? -1 : 1;
  return given.digits == kept.digits ? 0 : given.digits < kept.digits ? -1 : 1;
}

// The middle between two values of a type of at most 24 bits has at most 25, so its lowest 28 bits of a float64's 52 are zero. Zero itself
// may stand for a number that float64 has not.
bool may_be_a_middle(double number) { return (std::bit_cast<std::uint64_t>(number) & ((std::uint64_t{1} << 28) - 1)) == 0; }

std::string kept_text(const json& value) {
  const auto& bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

// Builds the value from the parser's events.
class Builder : public nlohmann::json_sax<json> {
 public:
  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return value == 0 ? put(-0.0) : put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    if (!may_be_a_middle(value) || compare_magnitude(text, value) == 0) return put(value);
    return put(json::binary(std::vector<std::uint8_t>(text.begin(), text.end())));
  }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(json::object()); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (open_.back()->contains(name)) {
      fault_ = fmt::format("the duplicate key \"{}\"", printable(name));
      return false;
    }
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    fault_ = error.what();
    if (const std::size_t bracket = fault_.find("] "); bracket != std::string::npos) fault_.erase(0, bracket + 2);
    return false;
  }

  json take() { return std::move(root_); }
  const std::string& fault() const { return fault_; }

 private:
  json* place(json value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    return &((*open_.back())[key_] = std::move(value));
  }
  bool put(json value) {
    place(std::move(value));
    return true;
  }
  bool open(json value) {
    open_.push_back(place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  json root_;
  std::vector<json*> open_;
  std::string key_, fault_;
};

}  // namespace

json parse_exact(std::string_view text) {
  Builder builder;
  if (!json::sax_parse(text.begin(), text.end(), &builder)) {
    const std::string fault = builder.fault().empty() ? "not JSON" : builder.fault();
    throw Error(ErrorCode::invalid_argument, "json", fault);
  }
  return builder.take();
}

double number_of(const json& value) { return value.is_binary() ? std::strtod(kept_text(value).c_str(), nullptr) : value.get<double>(); }

double nearly(const json& value, double number) {
  int side = 0;  // of the number itself, in magnitude
  if (value.is_binary()) {
    side = compare_magnitude(kept_text(value), number);
  } else if (value.is_number_integer() && std::fabs(number) > 0x1p53 && may_be_a_middle(number)) {  // smaller ones float64 has
    side = compare_magnitude(value.dump(), number);
  }
  if (side == 0) return number;
  const double away = std::copysign(std::numeric_limits<double>::infinity(), number);
  return std::nextafter(number, side > 0 ? away : 0.0);
}

}  // namespace quire::conformance
