// The language model: dense layers in Eigen, one token at a time, and attention through the
// library.
#include "model.h"

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <limits>

namespace quire::story {

namespace {

using Vector = Eigen::VectorXf;
using VectorMap = Eigen::Map<Eigen::VectorXf>;
using ConstVectorMap = Eigen::Map<const Eigen::VectorXf>;
using WeightMap =
    Eigen::Map<const Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

// Root-mean-square normalisation with a weight per element.
void normalise(const float* input, const float* weight, Vector& out) {
  const ConstVectorMap x(input, out.size());
  const float scale = 1.0F / std::sqrt(x.squaredNorm() / static_cast<float>(out.size()) + 1e-5F);
  out = x.cwiseProduct(ConstVectorMap(weight, out.size())) * scale;
}

void fill_nan(const Tensor& tensor) {
  std::fill_n(tensor.data<float>(), tensor.elements(), std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

Caches::Caches(const ModelSize& size, std::int64_t slots) {
  const std::array<std::int64_t, 4> together{2 * size.layers, slots, size.kv_heads,
                                             size.head_size()};
  checked_bytes(DType::f32, together, "tokens");
  for (std::int64_t layer = 0; layer < size.layers; ++layer) {
    for (std::vector<Tensor>* pools : {&keys, &values}) {
      pools->push_back(Tensor::empty(DType::f32, {slots, size.kv_heads, size.head_size()}, "pool"));
      fill_nan(pools->back());
    }
  }
}

// Pairs (2i, 2i + 1) of each head turn by the angle position * 10000^(-2i / head_size).
void Model::rotate(float* heads, std::int64_t count, std::int64_t position) const {
  const std::int64_t pairs = size_.head_size() / 2;
  const float* turns = rotations_.data() + position * pairs * 2;
  for (std::int64_t head = 0; head < count; ++head) {
    float* x = heads + head * size_.head_size();
    for (std::int64_t i = 0; i < pairs; ++i) {
      const float cosine = turns[2 * i], sine = turns[2 * i + 1], first = x[2 * i],
                  second = x[2 * i + 1];
      x[2 * i] = first * cosine - second * sine;
      x[2 * i + 1] = first * sine + second * cosine;
    }
  }
}

std::vector<Logits> Model::evaluate(const Index& index, std::span<const Token> tokens,
                                    Caches& caches, std::span<const std::int64_t> places,
                                    const On& on) const {
  const std::int64_t batch = index.batch(), seq = index.seq(), count = batch * seq;
  const std::int64_t dim = size_.dim, hidden = size_.hidden, head_size = size_.head_size(),
                     kv_dim = size_.kv_dim();
  std::vector<std::int64_t> real;  // places that hold a token
  for (std::int64_t place = 0; place < count; ++place) {
    if (index.pos().data<std::int64_t>()[place] >= 0) real.push_back(place);
  }
  const Tensor turns = positions(index, on);
  std::vector<float> stream(
      static_cast<std::size_t>(count * dim));  // each token's vector, from layer to layer
  for (const std::int64_t place : real) {
    std::copy_n(embedding_ + tokens[static_cast<std::size_t>(place)] * dim, dim,
                stream.data() + place * dim);
  }
  // Padding stays zero.
  const Tensor q = Tensor::zeros(DType::f32, {batch, seq, size_.heads, head_size}, "q");
  const Tensor k = Tensor::zeros(DType::f32, {batch, seq, size_.kv_heads, head_size}, "k");
  const Tensor v = Tensor::zeros(DType::f32, {batch, seq, size_.kv_heads, head_size}, "v");
  Vector normal(dim), gate(hidden), up(hidden);
  for (std::size_t number = 0; number < layers_.size(); ++number) {
    const Layer& layer = layers_[number];
    for (const std::int64_t place : real) {
      const std::int64_t position = turns.data<std::int64_t>()[place];
      normalise(stream.data() + place * dim, layer.attention_norm, normal);
      float* query = q.data<float>() + place * dim;
      float* key = k.data<float>() + place * kv_dim;
      VectorMap(query, dim).noalias() = WeightMap(layer.query, dim, dim) * normal;
      VectorMap(key, kv_dim).noalias() = WeightMap(layer.key, kv_dim, dim) * normal;
      VectorMap(v.data<float>() + place * kv_dim, kv_dim).noalias() =
          WeightMap(layer.value, kv_dim, dim) * normal;
      rotate(query, size_.heads, position);
      rotate(key, size_.kv_heads, position);
    }
    const bool tabled = index.is_tabled();
    const Attended attended =
        attend(index, q, k, v, tabled ? Pool::in_place(caches.keys[number]) : Pool(),
               tabled ? Pool::in_place(caches.values[number]) : Pool(), {}, on);
    for (const std::int64_t place : real) {
      VectorMap x(stream.data() + place * dim, dim);
      x.noalias() += WeightMap(layer.output, dim, dim) *
                     ConstVectorMap(attended.out.data<float>() + place * dim, dim);
      normalise(x.data(), layer.feed_norm, normal);
      gate.noalias() = WeightMap(layer.gate, hidden, dim) * normal;
      up.noalias() = WeightMap(layer.up, hidden, dim) * normal;
      for (std::int64_t i = 0; i < hidden; ++i) gate[i] *= up[i] / (1.0F + std::exp(-gate[i]));
      x.noalias() += WeightMap(layer.down, dim, hidden) * gate;
    }
  }
  std::vector<Logits> logits;
  for (const std::int64_t place : places) {
    normalise(stream.data() + place * dim, final_norm_, normal);
    logits.emplace_back(static_cast<std::size_t>(size_.vocabulary));
    VectorMap(logits.back().data(), size_.vocabulary).noalias() =
        WeightMap(classifier_, size_.vocabulary, dim) * normal;
  }
  return logits;
}

}  // namespace quire::story
