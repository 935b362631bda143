// The literal implementation's tensors: dtypes and their rounding, reading and printing.
#include <algorithm>
#include <cmath>
#include <limits>

#include "literal_parts.h"

namespace quire_literal {

void reject(const std::string& argument, const std::string& message) {
  throw Failure{"invalid_argument", argument, message};
}

void unsupported(const std::string& argument, const std::string& message) {
  throw Failure{"unsupported", argument, message};
}

namespace {

struct FloatFormat {
  const char* name;
  int precision;       // bits of the significand, the leading one included
  int least_exponent;  // of a normal number 1.f * 2^e
  long double largest;
  bool saturates;
};

const FloatFormat float_formats[] = {
    {"f64", 53, -1022, std::numeric_limits<double>::max(), false},
    {"f32", 24, -126, std::numeric_limits<float>::max(), false},
    {"bf16", 8, -126, 0x1.FEp127L, false},
    {"f16", 11, -14, 65504.0L, false},
    {"f8_e4m3fn", 4, -6, 448.0L, true},
    {"f8_e5m2", 3, -14, 57344.0L, true},
};

struct IntegerFormat {
  const char* name;
  Int least, greatest;
};

const IntegerFormat integer_formats[] = {
    {"bool", 0, 1},
    {"i8", -128, 127},
    {"u8", 0, 255},
    {"i16", -32768, 32767},
    {"i32", std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()},
    {"i64", std::numeric_limits<Int>::min(), std::numeric_limits<Int>::max()},
};

const FloatFormat* find_float(const std::string& dtype) {
  for (const FloatFormat& format : float_formats) {
    if (dtype == format.name) return &format;
  }
  return nullptr;
}

const IntegerFormat* find_integer(const std::string& dtype) {
  for (const IntegerFormat& format : integer_formats) {
    if (dtype == format.name) return &format;
  }
  return nullptr;
}

}  // namespace

bool Tensor::is_integer_dtype(const std::string& dtype) { return find_integer(dtype) != nullptr; }

Int Tensor::count() const {
  Int product = 1;
  for (Int length : shape) product *= length;
  return product;
}

Int Tensor::row_elements() const {
  Int product = 1;
  for (std::size_t axis = 1; axis < shape.size(); ++axis) product *= shape[axis];
  return product;
}

bool known_dtype(const std::string& dtype) {
  return find_float(dtype) != nullptr || find_integer(dtype) != nullptr;
}

bool wide_float(const std::string& dtype) {
  return dtype == "f16" || dtype == "bf16" || dtype == "f32" || dtype == "f64";
}

bool state_float(const std::string& dtype) {
  return dtype == "f32" || dtype == "bf16" || dtype == "f16" || dtype == "f8_e4m3fn" ||
         dtype == "f8_e5m2";
}

// E5: rounded to nearest even once; a finite value too large, or an infinity, becomes the largest
// finite fp8 value, infinity in the wider types; NaN stays NaN.
double round_to(const std::string& dtype, long double value) {
  const FloatFormat& format = *find_float(dtype);
  if (std::isnan(value)) return std::numeric_limits<double>::quiet_NaN();
  if (value == 0) return static_cast<double>(value);
  long double rounded = value;
  if (!std::isinf(value)) {
    int exponent = 0;
    std::frexp(value, &exponent);  // |value| = f * 2^exponent, 1/2 <= f < 1
    const int leading = std::max(exponent - 1, format.least_exponent);
    const int unit = leading - (format.precision - 1);
    rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  }
  if (std::fabs(rounded) > format.largest) {
    const long double too_large = format.saturates ? format.largest : HUGE_VALL;
    rounded = std::copysign(too_large, value);
  }
  return static_cast<double>(rounded);
}

Tensor zeros(const std::string& dtype, const std::vector<Int>& shape) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  if (Tensor::is_integer_dtype(dtype)) {
    tensor.integer.assign(static_cast<std::size_t>(tensor.count()), 0);
  } else {
    tensor.real.assign(static_cast<std::size_t>(tensor.count()), 0.0);
  }
  return tensor;
}

Tensor int_tensor(const std::string& dtype, const std::vector<Int>& shape,
                  const std::vector<Int>& values) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.integer = values;
  return tensor;
}

Int offset(const Tensor& tensor, std::initializer_list<Int> at) {
  Int place = 0;
  std::size_t axis = 0;
  for (Int coordinate : at) {
    place = place * tensor.shape[axis] + coordinate;
    ++axis;
  }
  return place;
}

double real_at(const Tensor& tensor, std::initializer_list<Int> at) {
  return tensor.real[static_cast<std::size_t>(offset(tensor, at))];
}

Int int_at(const Tensor& tensor, std::initializer_list<Int> at) {
  return tensor.integer[static_cast<std::size_t>(offset(tensor, at))];
}

// C1: rows are copied bit for bit. Rows are counted in units of `width` elements.
void copy_row(const Tensor& from, Int from_row, Tensor& to, Int to_row, Int width) {
  for (Int e = 0; e < width; ++e) {
    const auto source = static_cast<std::size_t>(from_row * width + e);
    const auto place = static_cast<std::size_t>(to_row * width + e);
    if (Tensor::is_integer_dtype(from.dtype)) {
      to.integer[place] = from.integer[source];
    } else {
      to.real[place] = from.real[source];
    }
  }
}

namespace {

void append_element(const Json& text, const std::string& field, Tensor& tensor) {
  const IntegerFormat* integer = find_integer(tensor.dtype);
  if (integer != nullptr) {
    if (text.is_boolean() && tensor.dtype == "bool") {
      tensor.integer.push_back(text.get<bool>() ? 1 : 0);
      return;
    }
    const Int value = json_integer(text, field);
    if (value < integer->least || value > integer->greatest) {
      reject(field, "a number does not fit " + tensor.dtype);
    }
    tensor.integer.push_back(value);
    return;
  }
  long double value = 0;
  if (text.is_number_unsigned()) {
    value = static_cast<long double>(text.get<std::uint64_t>());
  } else if (text.is_number_integer()) {
    value = static_cast<long double>(text.get<Int>());
  } else if (text.is_number()) {
    value = text.get<double>();
  } else if (text == "nan") {
    value = std::numeric_limits<long double>::quiet_NaN();
  } else if (text == "inf") {
    value = HUGE_VALL;
  } else if (text == "-inf") {
    value = -HUGE_VALL;
  } else {
    reject(field, "an element is not a number");
  }
  tensor.real.push_back(round_to(tensor.dtype, value));
}

void append_list(const Json& text, const std::string& field, std::size_t axis, Tensor& tensor) {
  if (axis == tensor.shape.size()) {
    if (text.is_array()) reject(field, "a ragged list");
    append_element(text, field, tensor);
    return;
  }
  if (!text.is_array() || static_cast<Int>(text.size()) != tensor.shape[axis]) {
    reject(field, "a ragged list");
  }
  for (const Json& part : text) append_list(part, field, axis + 1, tensor);
}

Tensor parse_list(const Json& text, const std::string& field, const std::string& dtype) {
  Tensor tensor;
  tensor.dtype = dtype;
  for (const Json* part = &text; part->is_array(); part = &part->at(0)) {
    tensor.shape.push_back(static_cast<Int>(part->size()));
    if (part->empty()) break;
  }
  append_list(text, field, 0, tensor);
  return tensor;
}

std::vector<Int> parse_shape(const Json& object, const std::string& field) {
  if (!object.contains("shape") || !object["shape"].is_array()) reject(field, "no shape");
  std::vector<Int> shape;
  for (const Json& length : object["shape"]) {
    shape.push_back(json_integer(length, field));
    if (shape.back() < 0) reject(field, "a negative length");
  }
  Wide count = 1;
  for (Int length : shape) {
    if (length != 0) count *= length;  // an empty tensor's rows are sized too
    if (count > std::numeric_limits<Int>::max()) reject(field, "too many elements");
  }
  return shape;
}

// A row stride is at least the row, and there is a row to speak of.
void read_row_stride(const Json& object, const std::string& field, Tensor& tensor) {
  if (!object.contains("row_stride")) return;
  const Int stride = json_integer(object["row_stride"], field);
  if (tensor.rank() == 0) reject(field, "a row stride without a row");
  if (stride < tensor.row_elements()) reject(field, "a row stride smaller than the row");
  tensor.padded = stride;
}

}  // namespace

Tensor parse_tensor(const Json& text, const std::string& field, const std::string& list_dtype) {
  if (text.is_array()) return parse_list(text, field, list_dtype);
  if (!text.is_object()) reject(field, "not a tensor");
  if (text.contains("file")) unsupported(field, "tensors in files are not read here");
  only_keys(text, field, {"dtype", "shape", "data", "row_stride"});
  Tensor tensor;
  if (!text.contains("dtype") || !text["dtype"].is_string()) reject(field, "no dtype");
  tensor.dtype = text["dtype"].get<std::string>();
  if (!known_dtype(tensor.dtype)) reject(field, "unknown dtype " + tensor.dtype);
  tensor.shape = parse_shape(text, field);
  if (!text.contains("data") || !text["data"].is_array()) reject(field, "no data");
  if (static_cast<Int>(text["data"].size()) != tensor.count()) reject(field, "wrong data count");
  read_row_stride(text, field, tensor);
  for (const Json& element : text["data"]) append_element(element, field, tensor);
  return tensor;
}

Json print_tensor(const Tensor& tensor) {
  Json data = Json::array();
  if (Tensor::is_integer_dtype(tensor.dtype)) {
    for (Int value : tensor.integer) {
      data.push_back(tensor.dtype == "bool" ? Json(value != 0) : Json(value));
    }
  } else {
    for (double value : tensor.real) {
      if (std::isnan(value)) {
        data.push_back("nan");
      } else if (std::isinf(value)) {
        data.push_back(value > 0 ? "inf" : "-inf");
      } else {
        data.push_back(value);
      }
    }
  }
  return {{"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data", data}};
}

}  // namespace quire_literal
