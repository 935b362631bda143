// The header of an .npy file: its Python literal, read strictly.
#include "npy_header.h"

#include "bytes.h"

#include <fmt/format.h>

#include <cstdint>

namespace quire::arrays {

namespace {

// A cursor over the literal; each function takes one thing or raises.
class Literal {
 public:
  explicit Literal(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(std::string_view allowed) const {
    const std::string_view rest = text_.substr(at_);
    reject("file",
           fmt::format("npy header with {} at byte {}",
                       rest.empty() ? "its end" : shown(rest.substr(0, 20)), at_),
           allowed);
  }

  void skip_blanks() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  bool take(char character) {
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != character) return false;
    ++at_;
    return true;
  }

  void require(char character) {
    if (!take(character)) fail(fmt::format("{}", character));
  }

  // Neither escapes nor anything beyond printable ASCII: no dtype that can be read has them.
  std::string_view string() {
    skip_blanks();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("a string");
    const char quote = text_[at_++];
    const std::size_t begin = at_;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' || text_[at_] < ' ' || text_[at_] > '~')
        fail("printable ASCII without escapes");
      ++at_;
    }
    if (at_ == text_.size()) fail("the string's closing quote");
    return text_.substr(begin, at_++ - begin);
  }

  bool boolean() {
    skip_blanks();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("True or False");
  }

  std::int64_t integer() {
    skip_blanks();
    const std::size_t begin = at_;
    std::int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text_[at_] - '0', &value)) {
        at_ = begin;
        fail("an axis below 2^63");
      }
      ++at_;
    }
    if (at_ == begin || (text_[begin] == '0' && at_ > begin + 1)) {
      at_ = begin;
      fail("a whole number of 0 or more");
    }
    return value;
  }

  // A tuple: "(3)" is a number in brackets and none.
  Shape integers() {
    Shape shape;
    require('(');
    bool has_comma = true;
    while (!take(')')) {
      if (!has_comma) fail(", or )");
      if (shape.size() == max_rank) fail(fmt::format("at most {} axes", max_rank));
      shape.push_back(integer());
      has_comma = take(',');
      if (shape.size() == 1 && !has_comma) fail("the comma of a tuple");
    }
    return shape;
  }

  void require_end() {
    skip_blanks();
    if (at_ < text_.size()) fail("blanks behind the header");
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text) {
  Literal literal(text);
  NpyHeader header;
  bool has_descr = false;
  bool has_order = false;
  bool has_shape = false;
  const auto once = [&](bool& seen, std::string_view key) {
    if (seen) reject("file", fmt::format("npy header with {} twice", key), "each entry once");
    seen = true;
  };
  literal.require('{');
  bool has_comma = true;
  while (!literal.take('}')) {
    if (!has_comma) literal.fail(", or }");
    const std::string_view key = literal.string();
    literal.require(':');
    if (key == "descr") {
      once(has_descr, key);
      literal.skip_blanks();
      if (literal.take('['))
        reject("file", "an npy file of a structured dtype", "one number per element");
      header.descr = literal.string();
    } else if (key == "fortran_order") {
      once(has_order, key);
      header.fortran_order = literal.boolean();
    } else if (key == "shape") {
      once(has_shape, key);
      header.shape = literal.integers();
    } else {
      reject("file", "npy header with the entry " + shown(key), "descr, fortran_order and shape");
    }
    has_comma = literal.take(',');
  }
  literal.require_end();
  if (!has_descr || !has_order || !has_shape) {
    reject("file",
           fmt::format("npy header without {}", !has_descr   ? "descr"
                                                : !has_order ? "fortran_order"
                                                             : "shape"),
           "descr, fortran_order and shape");
  }
  return header;
}

std::string npy_header_text(std::string_view descr, const Shape& shape) {
  std::string axes;
  for (const std::int64_t axis : shape) axes += fmt::format("{}{}", axes.empty() ? "" : ", ", axis);
  if (shape.size() == 1) axes += ",";
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, axes);
  // NumPy leaves room for 21 digits of axis 0, so that an array can be appended to in place.
  if (!shape.empty()) text.append(21 - fmt::to_string(shape[0]).size(), ' ');
  return text;
}

}  // namespace quire::arrays
