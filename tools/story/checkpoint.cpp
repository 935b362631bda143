// The checkpoint reader: llama2.c's first format, a header of 7 int32 and float32 weights. Nothing
// in a file is believed unchecked.
#include "files.h"
#include "model.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace quire::story {

namespace {

static_assert(std::endian::native == std::endian::little, "checkpoints are little-endian");

// A product or sum of sizes; raises where it passes 2^62.
class Bytes {
 public:
  void add(std::int64_t first, std::int64_t second = 1, std::int64_t third = 1) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(first, second, &product) ||
        __builtin_mul_overflow(product, third, &product) ||
        __builtin_add_overflow(floats_, product, &floats_) || floats_ > (std::int64_t{1} << 60)) {
      throw std::runtime_error("the header's sizes need more than 2^62 bytes of weights");
    }
  }
  std::uint64_t total() const {
    return checkpoint_header_bytes + static_cast<std::uint64_t>(floats_) * sizeof(float);
  }

 private:
  std::int64_t floats_ = 0;
};

void require(bool right, const std::string& problem) {
  if (!right) throw std::runtime_error(problem);
}

void require_bytes(std::uint64_t actual, std::uint64_t expected) {
  require(actual >= expected,
          fmt::format("truncated: {} bytes, the header's sizes need {}", actual, expected));
  require(actual == expected,
          fmt::format("too long: {} bytes, the header's sizes need {}", actual, expected));
}

void require_header(std::uint64_t actual) {
  require(actual >= checkpoint_header_bytes,
          fmt::format("truncated: {} bytes, a llama2.c header alone has {}", actual,
                      checkpoint_header_bytes));
}

}  // namespace

ModelSize parse_header(std::span<const std::byte> bytes) {
  require_header(bytes.size());
  std::array<std::int32_t, 7> numbers{};
  std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
  constexpr std::int32_t version_magic = 0x616b3432;  // llama2.c's later formats begin so
  require(
      numbers[0] != version_magic,
      "a newer llama2.c format; allowed: the first one, a header of 7 int32 and float32 weights");
  ModelSize size;
  size.dim = numbers[0];
  size.hidden = numbers[1];
  size.layers = numbers[2];
  size.heads = numbers[3];
  size.kv_heads = numbers[4];
  size.vocabulary = std::abs(std::int64_t{numbers[5]});
  size.own_classifier = numbers[5] < 0;
  size.context = numbers[6];
  const std::pair<const char*, std::int64_t> positive[] = {
      {"dim", size.dim},       {"hidden_dim", size.hidden},   {"n_layers", size.layers},
      {"n_heads", size.heads}, {"n_kv_heads", size.kv_heads}, {"seq_len", size.context}};
  for (const auto& [name, value] : positive) {
    require(value > 0, fmt::format("no llama2.c model: {} is {}; allowed: 1 or more", name, value));
  }
  require(
      size.vocabulary >= 3,
      fmt::format("no llama2.c model: vocab_size is {}; allowed: 3 or more tokens", numbers[5]));
  require(
      size.dim % size.heads == 0,
      fmt::format("no llama2.c model: dim {} is no multiple of n_heads {}", size.dim, size.heads));
  require(size.head_size() % 2 == 0,
          fmt::format("no llama2.c model: heads of {} numbers; allowed: an even size",
                      size.head_size()));
  require(size.heads % size.kv_heads == 0,
          fmt::format("no llama2.c model: n_heads {} is no multiple of n_kv_heads {}", size.heads,
                      size.kv_heads));
  return size;
}

std::uint64_t checkpoint_bytes(const ModelSize& size) {
  Bytes bytes;
  bytes.add(size.vocabulary, size.dim);
  bytes.add(size.layers, size.dim, 2);                  // the two norms
  bytes.add(size.layers, size.dim * size.dim, 2);       // query and output
  bytes.add(size.layers, size.dim * size.kv_dim(), 2);  // key and value
  bytes.add(size.layers, size.dim * size.hidden, 3);    // the feed-forward layers
  bytes.add(size.dim);                                  // the last norm
  bytes.add(size.context, size.head_size());            // rotations that older programs read here
  if (size.own_classifier) bytes.add(size.vocabulary, size.dim);
  return bytes.total();
}

Model Model::parse(std::span<const std::byte> bytes) {
  Model model;
  model.size_ = parse_header(bytes);
  const ModelSize& size = model.size_;
  require_bytes(bytes.size(), checkpoint_bytes(size));
  model.weights_.resize((bytes.size() - checkpoint_header_bytes) / sizeof(float));
  std::memcpy(model.weights_.data(), bytes.data() + checkpoint_header_bytes,
              model.weights_.size() * sizeof(float));
  const float* next = model.weights_.data();
  const auto take = [&next](std::int64_t floats) {
    const float* const begin = next;
    next += floats;
    return begin;
  };
  model.layers_.resize(static_cast<std::size_t>(size.layers));
  // Each kind of weight stands for all layers together.
  const auto take_layers = [&](const float* Layer::*member, std::int64_t floats) {
    for (Layer& layer : model.layers_) layer.*member = take(floats);
  };
  model.embedding_ = take(size.vocabulary * size.dim);
  take_layers(&Layer::attention_norm, size.dim);
  take_layers(&Layer::query, size.dim * size.dim);
  take_layers(&Layer::key, size.dim * size.kv_dim());
  take_layers(&Layer::value, size.dim * size.kv_dim());
  take_layers(&Layer::output, size.dim * size.dim);
  take_layers(&Layer::feed_norm, size.dim);
  take_layers(&Layer::gate, size.dim * size.hidden);
  take_layers(&Layer::down, size.dim * size.hidden);
  take_layers(&Layer::up, size.dim * size.hidden);
  model.final_norm_ = take(size.dim);
  take(size.context * size.head_size());
  model.classifier_ = size.own_classifier ? take(size.vocabulary * size.dim) : model.embedding_;

  const std::int64_t pairs = size.head_size() / 2;
  model.rotations_.reserve(static_cast<std::size_t>(size.context * pairs * 2));
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < pairs; ++i) {
    frequencies.push_back(
        std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(size.head_size())));
  }
  for (std::int64_t position = 0; position < size.context; ++position) {
    for (const double frequency : frequencies) {
      const double angle = static_cast<double>(position) * frequency;
      model.rotations_.push_back(static_cast<float>(std::cos(angle)));
      model.rotations_.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return model;
}

Model Model::load(const std::string& path) {
  InputFile file(path, "model", "give one with --model");
  try {
    const std::vector<std::byte> header = file.first(checkpoint_header_bytes);
    require_bytes(file.size(), checkpoint_bytes(parse_header(header)));
    // The weights are held twice for a moment, and the caches come on top.
    require(file.size() / 2 <= static_cast<std::uint64_t>(allowed_bytes()) / 4,
            fmt::format("{} bytes, too large for this machine's memory", file.size()));
    return parse(file.first(file.size()));
  } catch (const std::runtime_error& error) {
    if (std::string_view(error.what()).starts_with("model ")) throw;
    file.fail(error.what());
  }
}

}  // namespace quire::story
