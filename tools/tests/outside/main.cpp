// Uses the installed library: stores three rows and reads them back.
#include <quire/ops.h>

#include <cstdio>
#include <vector>

int main() {
  const std::vector<std::int64_t> lens = {3};
  const quire::Index index = quire::Index::rows(4, lens);
  const std::vector<float> rows = {1, 2, 3};
  const quire::Extended extended =
      quire::extend(index, quire::Tensor::of(std::span<const float>(rows), {1, 3, 1}), quire::Tensor::zeros(quire::DType::f32, {4, 1}));
  float sum = 0;
  for (std::int64_t j = 0; j < 4; ++j) sum += static_cast<float>(j + 1) * extended.seen.data<float>()[j];
  std::printf("%g on %.*s\n", static_cast<double>(sum), static_cast<int>(quire::default_backend().name().size()), quire::default_backend().name().data());
  return sum == 1 + 2 * 2 + 3 * 3 ? 0 : 1;
}
