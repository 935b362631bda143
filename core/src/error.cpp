// Errors and dtypes: their names and sizes.
#include <quire/dtype.h>
#include <quire/error.h>

#include <array>

namespace quire {

std::string_view name(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument: return "invalid_argument";
    case ErrorCode::unsupported: return "unsupported";
    case ErrorCode::unavailable: return "unavailable";
    case ErrorCode::internal: return "internal";
  }
  return "internal";
}

namespace {

// Control characters as \xNN, so that a message is one line and says all it has to say.
std::string without_controls(std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  std::string line;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      line += c;
    } else {
      line.append({'\\', 'x', digits[byte >> 4], digits[byte & 15]});
    }
  }
  return line;
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::size_t most = 300;
  std::string line = without_controls(text.substr(0, most));
  if (text.size() > most) line += "...";
  return line;
}

std::string Error::escaped(const std::string& message) { return without_controls(message); }

void reject(std::string_view argument, std::string_view given, std::string_view allowed) {
  std::string message;
  message.append(printable(argument)).append(": ").append(printable(given)).append("; allowed: ").append(allowed);
  throw Error(ErrorCode::invalid_argument, std::string(argument), message);
}

namespace {

enum class Kind { boolean, integer, floating };

struct DTypeFacts {
  std::string_view name;
  std::int64_t size;
  Kind kind;
};

// In the order of the ABI's numbers.
constexpr std::array<DTypeFacts, QUIRE_DTYPE_COUNT> facts = {{{"bool", 1, Kind::boolean},
                                                              {"i8", 1, Kind::integer},
                                                              {"u8", 1, Kind::integer},
                                                              {"i16", 2, Kind::integer},
                                                              {"i32", 4, Kind::integer},
                                                              {"i64", 8, Kind::integer},
                                                              {"f16", 2, Kind::floating},
                                                              {"bf16", 2, Kind::floating},
                                                              {"f32", 4, Kind::floating},
                                                              {"f64", 8, Kind::floating},
                                                              {"f8_e4m3fn", 1, Kind::floating},
                                                              {"f8_e5m2", 1, Kind::floating}}};

const DTypeFacts& facts_of(DType dtype) { return facts[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view name(DType dtype) { return facts_of(dtype).name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::int64_t size_of(DType dtype) { return facts_of(dtype).size; }
bool is_integer(DType dtype) { return facts_of(dtype).kind == Kind::integer; }
bool is_float(DType dtype) { return facts_of(dtype).kind == Kind::floating; }
bool is_index_integer(DType dtype) { return dtype == DType::i32 || dtype == DType::i64; }

bool is_compute_float(DType dtype) {
  return dtype == DType::f16 || dtype == DType::bf16 || dtype == DType::f32 || dtype == DType::f64;
}

bool is_state(DType dtype) { return is_float(dtype) && dtype != DType::f64; }

}  // namespace quire
