// Tests of array files: exact bytes, files of other programs, round trips, what is rejected.
#include "arrays/npy.h"
#include "arrays/npz.h"
#include "arrays/safetensors.h"
#include "arrays/zip.h"
#include "arrays_helpers.h"
#include "arrays_samples.h"

#include <cstdlib>
#include <map>

namespace quire::arrays {

using namespace testing;

namespace {

const std::vector<Shape> shapes = {
    {}, {1}, {5}, {0}, {2, 3}, {0, 3}, {3, 0}, {2, 1, 3}, {1, 2, 3, 2, 1}};

Buffer sample(std::string_view hex) { return from_hex(hex); }

TEST_CASE("npy: the bytes of a small file") {
  const std::vector<float> values = {1, -2, 0.5f, 0, 3, 4};
  Buffer expected = from_text("\x93NUMPY");
  for (const int byte : {1, 0, 118, 0}) expected.push_back(static_cast<std::byte>(byte));
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header.append(117 - header.size(), ' ');
  append_text(expected, header + "\n");
  for (const unsigned bits :
       {0x3f800000u, 0xc0000000u, 0x3f000000u, 0u, 0x40400000u, 0x40800000u}) {
    append_number(expected, bits);
  }
  CHECK(write_npy(Tensor::of(std::span(values), {2, 3})) == expected);
}

TEST_CASE("npy: files of NumPy, read and written again with the same bytes") {
  const auto check = [](std::string_view hex, DType dtype, const Shape& shape,
                        const std::vector<double>& values, bool is_canonical,
                        std::optional<DType> as = {}) {
    const Buffer file = sample(hex);
    const Tensor tensor = read_npy(file, as);
    CHECK(tensor.dtype() == dtype);
    CHECK(tensor.shape() == shape);
    CHECK(numbers(tensor) == values);
    CHECK((write_npy(tensor) == file) == is_canonical);
    CHECK(same(read_npy(file, dtype), tensor));
  };
  check(samples::npy_bool, DType::boolean, {1, 3}, {1, 0, 1}, true);
  check(samples::npy_i16_big, DType::i16, {3}, {1, -2, 300}, false);
  check(samples::npy_f64_big, DType::f64, {2}, {1.5, -2.25}, false);
  check(samples::npy_f32_fortran, DType::f32, {2, 3}, {0, 1, 2, 3, 4, 5}, false);
  std::vector<double> counted(24);
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = static_cast<double>(i);
  check(samples::npy_f16_fortran_3, DType::f16, {2, 3, 4}, counted, false);
  check(samples::npy_i64_rank0, DType::i64, {}, {-7}, true);
  check(samples::npy_u8_empty, DType::u8, {0, 3}, {}, true);
  check(samples::npy_i8_v2, DType::i8, {2}, {0, 1}, false);
  check(samples::npy_i32_v3, DType::i32, {2}, {0, 1}, false);
  check(samples::npy_bf16, DType::bf16, {3}, {1, 2, -3}, true, DType::bf16);
  check(samples::npy_e4m3, DType::f8_e4m3fn, {3}, {1, 2, -3}, false, DType::f8_e4m3fn);
  check(samples::npy_e5m2, DType::f8_e5m2, {3}, {1, 2, -3}, false);
}

TEST_CASE("npy: untyped elements need a dtype, others only agree with one") {
  raises("file", "no dtype named", [] { read_npy(sample(samples::npy_bf16)); });
  raises("file", "such as bf16", [] { read_npy(sample(samples::npy_bf16)); });
  raises("file", "such as f8_e4m3fn or f8_e5m2", [] { read_npy(sample(samples::npy_e4m3)); });
  raises("file", "a dtype of 2 bytes", [] { read_npy(sample(samples::npy_bf16), DType::f32); });
  CHECK(numbers(read_npy(sample(samples::npy_bf16), DType::i16)) ==
        std::vector<double>{0x3f80, 0x4000, 0xc040 - 0x10000});
  raises("file", "nothing is converted", [] { read_npy(sample(samples::npy_i32_v3), DType::f32); });
  raises("file", "nothing is converted", [] { read_npy(sample(samples::npy_i32_v3), DType::i64); });
  raises("file", "nothing is converted",
         [] { read_npy(sample(samples::npy_e5m2), DType::f8_e4m3fn); });
  raises("file", "a bool of byte 63", [] {
    read_npy(npy_of("{'descr':'|V1','fortran_order':False,'shape':(1,)}", "?"), DType::boolean);
  });
}

TEST_CASE("npy: every descr") {
  const std::map<std::string, DType> descrs = {{"|b1", DType::boolean},
                                               {"|i1", DType::i8},
                                               {"<i1", DType::i8},
                                               {"|u1", DType::u8},
                                               {"<i2", DType::i16},
                                               {">i2", DType::i16},
                                               {"<i4", DType::i32},
                                               {">i4", DType::i32},
                                               {"<i8", DType::i64},
                                               {">i8", DType::i64},
                                               {"<f2", DType::f16},
                                               {">f2", DType::f16},
                                               {"<f4", DType::f32},
                                               {">f4", DType::f32},
                                               {"<f8", DType::f64},
                                               {">f8", DType::f64},
                                               {"bfloat16", DType::bf16},
                                               {"float8_e4m3fn", DType::f8_e4m3fn},
                                               {"float8_e5m2", DType::f8_e5m2},
                                               {"<f1", DType::f8_e5m2},
                                               {"|f1", DType::f8_e5m2}};
  const std::string bytes("\0\1\2\3\4\5\6\7", 8);
  for (const auto& [descr, dtype] : descrs) {
    CAPTURE(descr);
    const auto size = static_cast<std::size_t>(size_of(dtype));
    const Tensor tensor =
        read_npy(npy_of("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,)}",
                        bytes.substr(0, size)));
    CHECK(tensor.dtype() == dtype);
    std::string expected = bytes.substr(0, size);
    if (descr[0] == '>') std::reverse(expected.begin(), expected.end());
    CHECK(text_of(bytes_of(tensor)) == expected);
  }
  for (const char* descr : {"<u2", "<u4", "<u8", "<c8", "|O", "<M8[ns]", "<U2", "|S3", "<f16",
                            "=i4", "i4", "|i4", "|f2", ">V2", "<V3", "", "float32"}) {
    CAPTURE(descr);
    raises("file", "npy dtype", [&] {
      read_npy(
          npy_of("{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': ()}",
                 "12345678"));
    });
  }
  raises("file", "structured", [] { read_npy(sample(samples::npy_struct)); });
  raises("file", "<c8", [] { read_npy(sample(samples::npy_complex)); });
}

TEST_CASE("npy: the header is a strict literal") {
  const auto read = [](std::string_view header) { return read_npy(npy_of(header, "abcd")); };
  CHECK(read("{'descr':'|u1','fortran_order':False,'shape':(2,2)}").shape() == Shape{2, 2});
  CHECK(read("{\"shape\":(4,),\"fortran_order\":True,\"descr\":\"|u1\",}").shape() == Shape{4});
  CHECK(read(" { 'descr' : '<f4' ,\n'fortran_order' : True , 'shape' : ( ) , } \t\n").shape() ==
        Shape{});
  CHECK(read("{'descr':'|u1','fortran_order':False,'shape':(4,1,)}").shape() == Shape{4, 1});
  for (const char* header :
       {"",
        "{",
        "{}",
        "[]",
        "{'descr':'|u1','fortran_order':False}",
        "{'descr':'|u1','shape':(4,)}",
        "{'fortran_order':False,'shape':(4,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(4)}",
        "{'descr':'|u1','fortran_order':False,'shape':[4]}",
        "{'descr':'|u1','fortran_order':False,'shape':4}",
        "{'descr':'|u1','fortran_order':False,'shape':(04,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(+4,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(-4,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(4.0,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(4L,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(4,,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(2 2)}",
        "{'descr':'|u1','fortran_order':False,'shape':(4,}",
        "{'descr':'|u1','fortran_order':false,'shape':(4,)}",
        "{'descr':'|u1','fortran_order':0,'shape':(4,)}",
        "{'descr':'|u1','fortran_order':Falsey,'shape':(4,)}",
        "{'descr':None,'fortran_order':False,'shape':(4,)}",
        "{'descr':'|u1' 'fortran_order':False,'shape':(4,)}",
        "{,'descr':'|u1','fortran_order':False,'shape':(4,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(4,),,}",
        "{'descr':'|u1','fortran_order':False,'shape':(4,),'x':1}",
        "{'descr':'|u1','descr':'|u1','fortran_order':False,'shape':(4,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(4,)} x",
        "{'descr':'|u1','fortran_order':False,'shape':(4,)}{}",
        "{'descr':'|u1\",'fortran_order':False,'shape':(4,)}",
        "{'descr':'\\x7cu1','fortran_order':False,'shape':(4,)}",
        "{descr:'|u1','fortran_order':False,'shape':(4,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(9223372036854775808,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(3,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(5,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(0,)}",
        "{'descr':'<f8','fortran_order':False,'shape':(1152921504606846976,)}",
        "{'descr':'|u1','fortran_order':False,'shape':(4294967296,4294967296)}",
        "{'descr':'|u1','fortran_order':False,'shape':(0,4294967296,4294967296)}"}) {
    CAPTURE(header);
    raises("file", "", [&] { read(header); });
  }
  std::string axes;
  for (int i = 0; i < 64; ++i) axes += "1,";
  CHECK(read_npy(npy_of("{'descr':'|u1','fortran_order':False,'shape':(" + axes + ")}", "a"))
            .rank() == 64);
  raises("file", "at most 64 axes", [&] {
    read_npy(npy_of("{'descr':'|u1','fortran_order':False,'shape':(" + axes + "1)}", "a"));
  });
  raises("file", "versions 1.0", [] { read_npy(from_text("\x93NUMPY\x04 12345678")); });
  raises("file", "magic", [] { read_npy(from_text("PK\x03\x04 and more")); });
}

TEST_CASE("every dtype and shape through each format, dense and strided") {
  std::map<std::string, Tensor> all;
  for (const DType dtype : all_dtypes) {
    for (const Shape& shape : shapes) {
      const Tensor tensor = counting(dtype, shape);
      CHECK(same(read_npy(write_npy(tensor), dtype), tensor));
      all.emplace(std::string(name(dtype)) + to_string(shape), tensor);
    }
  }
  const std::string umlaut =
      "gr\xc3\xb6\xc3\x9f"
      "e/\"q\"";
  all.emplace(umlaut, counting(DType::i8, {3}));
  const auto check = [&](const std::map<std::string, Tensor>& back) {
    CHECK(back.size() == all.size());
    for (const auto& [key, tensor] : all) CHECK(same(back.at(key), tensor));
  };
  check(read_safetensors(write_safetensors(all)));
  std::map<std::string, DType> as;
  for (const auto& [key, tensor] : all) as.emplace(key, tensor.dtype());
  check(read_npz(write_npz(all), as));
  CHECK(write_npz(all) == write_npz(all));

  // Rows apart in memory, and axes the other way round.
  const Tensor base = counting(DType::f32, {3, 4});
  const Tensor rows = Tensor::borrow(base.raw(), DType::f32, {3, 2}, {4, 1});
  const Tensor turned = Tensor::borrow(base.raw(), DType::f32, {4, 3}, {1, 4});
  for (const Tensor& strided : {rows, turned}) {
    CHECK(same(read_npy(write_npy(strided)), strided.clone()));
    CHECK(same(read_npz(write_npz({{"x", strided}})).at("x"), strided.clone()));
    CHECK(same(read_safetensors(write_safetensors({{"x", strided}})).at("x"), strided.clone()));
  }
}

TEST_CASE("npz: files of NumPy") {
  std::vector<std::string_view> readable = {samples::npz_stored};
#ifdef QUIRE_HAVE_ZLIB
  readable.push_back(samples::npz_deflated);
#else
  raises("file", "no zlib", [] { read_npz(sample(samples::npz_deflated)); });
#endif
  for (const std::string_view hex : readable) {
    const Buffer file = sample(hex);
    CHECK(npz_names(file) == std::vector<std::string>{"a", "b"});
    const auto tensors = read_npz(file);
    CHECK(tensors.size() == 2);
    CHECK(numbers(tensors.at("a")) == std::vector<double>{0, 1});
    CHECK(tensors.at("b").shape() == Shape{1, 2});
    CHECK(numbers(tensors.at("b")) == std::vector<double>{1.5, -2});
    CHECK(same(read_npz_entry(file, "b"), tensors.at("b")));
    raises("key", "\"c\"; allowed: \"a\", \"b\"", [&] { read_npz_entry(file, "c"); });
    raises("key", "allowed: \"a\", \"b\"", [&] { read_npz(file, {{"b.npy", DType::f32}}); });
  }
#ifdef QUIRE_HAVE_ZLIB
  // A streamed archive: sizes stand behind the data, and a comment behind the directory.
  CHECK(numbers(read_npz(sample(samples::npz_streamed)).at("s")) == std::vector<double>{3});
#endif
  const Buffer half = sample(samples::npz_bf16);
  raises("file", "\"h.npy\": untyped", [&] { read_npz(half); });
  CHECK(numbers(read_npz_entry(half, "x")) == std::vector<double>{4});
  CHECK(numbers(read_npz_entry(half, "h", DType::bf16)) == std::vector<double>{1, 2, -3});
  CHECK(numbers(read_npz(half, {{"h", DType::bf16}}).at("h")) == std::vector<double>{1, 2, -3});
}

TEST_CASE("npz: the bytes of a small archive") {
  const Buffer array = write_npy(counting(DType::u8, {2}));
  Buffer expected;
  const auto put = [&](std::string_view hex) { append_bytes(expected, from_hex(hex)); };
  const auto sums = [&] {
    append_number(expected, crc32(array));
    append_number(expected, static_cast<std::uint32_t>(array.size()));
    append_number(expected, static_cast<std::uint32_t>(array.size()));
  };
  put("504b0304"
      "1400"
      "0000"
      "0000"
      "0000"
      "2100");
  sums();
  put("0500"
      "0000"
      "612e6e7079");
  append_bytes(expected, array);
  const auto directory = static_cast<std::uint32_t>(expected.size());
  put("504b0102"
      "2d00"
      "1400"
      "0000"
      "0000"
      "0000"
      "2100");
  sums();
  put("0500"
      "0000"
      "0000"
      "0000"
      "0000"
      "00000000"
      "00000000"
      "612e6e7079");
  put("504b0506"
      "0000"
      "0000"
      "0100"
      "0100"
      "33000000");
  append_number(expected, directory);
  put("0000");
  CHECK(write_npz({{"a", counting(DType::u8, {2})}}) == expected);
  CHECK(write_npz({}) == from_hex("504b0506"
                                  "00*18,"));
  CHECK(read_npz(write_npz({})).empty());
  raises("key", "no arrays", [] { read_npz_entry(write_npz({}), "a"); });
  raises("key", "empty name", [] { write_npz({{"", counting(DType::u8, {2})}}); });
  raises("key", "65535", [] { write_npz({{std::string(65532, 'x'), counting(DType::u8, {2})}}); });
  CHECK(crc32(from_text("123456789")) == 0xcbf43926u);
  CHECK(crc32(from_text("456789"), crc32(from_text("123"))) == 0xcbf43926u);
  CHECK(crc32(from_text("The quick brown fox jumps over the lazy dog")) == 0x414fa339u);
}

TEST_CASE("zip64: the large fields are written and read") {
  const Buffer one = write_npy(counting(DType::u8, {2}));
  const Buffer two = write_npy(counting(DType::f32, {3}));
  const std::vector<ZipInput> members = {{"one.npy", {}, one}, {"two.npy", {}, two}};
  const Buffer archive = write_zip(members, Zip64::always);
  CHECK(archive.size() > write_zip(members).size());
  const auto tensors = read_npz(archive);
  CHECK(same(tensors.at("one"), counting(DType::u8, {2})));
  CHECK(same(tensors.at("two"), counting(DType::f32, {3})));
}

TEST_CASE("safetensors: the bytes of a small file") {
  const std::vector<float> values = {1, 2};
  const std::string header =
      R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{"dtype":"BOOL","shape":[1,2],"data_offsets":[8,10]}})";
  CHECK(header.size() == 111);
  const std::vector<std::uint8_t> bools = {1, 0};
  CHECK(write_safetensors({{"a", Tensor::of_bools(std::span(bools), {1, 2})},
                           {"b", Tensor::of(std::span(values), {2})}}) ==
        safetensors_of(header + " ", std::string_view("\0\0\x80\x3f\0\0\0\x40\1\0", 10)));
}

TEST_CASE("safetensors: files of the library, read and written again with the same bytes") {
  const Buffer mixed = sample(samples::safetensors_mixed);
  const auto tensors = read_safetensors(mixed);
  CHECK(tensors.size() == 5);
  CHECK(numbers(tensors.at("a")) == std::vector<double>{0, 1});
  CHECK(tensors.at("b").dtype() == DType::bf16);
  CHECK(numbers(tensors.at("b")) == std::vector<double>{3});
  CHECK(tensors.at("c").shape() == Shape{0, 3});
  CHECK(numbers(tensors.at("d")) == std::vector<double>{1, 0});
  CHECK(tensors.at("e").dtype() == DType::f8_e4m3fn);
  CHECK(numbers(tensors.at("e")) == std::vector<double>{1, -2});
  CHECK(write_safetensors(tensors) == mixed);
  CHECK(safetensors_names(sample(samples::safetensors_metadata)) ==
        std::vector<std::string>{"a", "b"});
  CHECK(numbers(read_safetensors(sample(samples::safetensors_metadata)).at("b")) ==
        std::vector<double>{1, 2});
  CHECK(read_safetensors(sample(samples::safetensors_none)).empty());

  // A dtype that Quire has not matters only to the tensor that has it.
  const Buffer unsigned16 = sample(samples::safetensors_u16);
  CHECK(numbers(read_safetensors_entry(unsigned16, "b", DType::f32)) == std::vector<double>{1, 2});
  raises("file", "of dtype \"U16\"", [&] { read_safetensors_entry(unsigned16, "a"); });
  raises("file", "of dtype \"U16\"", [&] { read_safetensors(unsigned16); });
  raises("file", "nothing is converted",
         [&] { read_safetensors_entry(unsigned16, "b", DType::i32); });
  raises("key", "\"c\"; allowed: \"a\", \"b\"", [&] { read_safetensors_entry(unsigned16, "c"); });
}

TEST_CASE("safetensors: what a header may say") {
  const auto read = [](std::string_view header, std::string_view data) {
    return read_safetensors(safetensors_of(header, data));
  };
  CHECK(read(R"({"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}})", "x").at("a").rank() == 0);
  CHECK(read(R"({"__metadata__":{"k":"v"}}  )", "").empty());
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", ""},
      {"[]", ""},
      {" {}", ""},
      {"{}", "x"},
      {"{", ""},
      {"{}{}", ""},
      {"{\"a\":1}", ""},
      {"{\"\xff\":1}", ""},
      {R"({"a":{"dtype":"U8","shape":[1]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":1}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       "x"},
      {R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "x"},
      {R"({"a":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,2]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})", "xy"},
      {R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", "xy"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
       "xyz"},
      {R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "x"},
      {R"({"a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", ""},
      {R"({"a":{"dtype":"U8","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}})", ""},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,0]}})", ""},
      {R"({"a":{"dtype":"U8","shape":[1e999],"data_offsets":[0,0]}})", ""},
      {"{\"a\":" + std::string(100000, '[') + std::string(100000, ']') + "}", ""}};
  for (const auto& [header, data] : bad) {
    CAPTURE(header.substr(0, 200));
    raises("file", "", [&] { read(header, data); });
  }
  raises("file", "8 bytes", [] { read_safetensors(from_text("1234567")); });
  raises("file", "at most 0", [] { read_safetensors(from_hex("ff*8,")); });
  raises("key", "__metadata__", [] {
    write_safetensors({{"__metadata__", counting(DType::u8, {1})}});
  });
  raises("key", "names in UTF-8", [] { write_safetensors({{"\xff", counting(DType::u8, {1})}}); });
}

TEST_CASE("writers take host tensors only") {
  const Tensor device = Tensor::borrow(nullptr, DType::f32, {2}, {}, Device{QUIRE_DEVICE_CUDA, 0});
  for (const Tensor& bad : {Tensor(), device}) {
    raises("file", "to write", [&] { write_npy(bad); });
    raises("file", "to write", [&] { write_npz({{"x", bad}}); });
    raises("file", "to write", [&] { write_safetensors({{"x", bad}}); });
  }
  const Tensor deep = counting(DType::u8, Shape(65, 1));
  raises("file", "65 axes", [&] { write_npy(deep); });
  raises("file", "65 axes", [&] { write_safetensors({{"x", deep}}); });
}

}  // namespace

}  // namespace quire::arrays
