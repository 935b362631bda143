// What tokens are and see: positions, mask, advance (laws A11, A12, B6).
#include "../index.h"
#include "../kernels.h"

namespace quire::gpu {

// A12: `pos` clamped to [0, C - 1], padding 0; independent of the block size read in.
QUIRE_KERNEL(positions, TokensParameters) {
  const IndexView& index = parameters.index;
  const std::int64_t tokens = batch_of(index) * seq_of(index);
  for (std::int64_t n = block() * threads() + thread(); n < tokens; n += blocks() * threads()) {
    const std::int64_t b = n / seq_of(index), i = n % seq_of(index);
    const std::int64_t t = position(index, b, i);
    const std::int64_t clamped = t < 0 ? 0 : t < index.context ? t : index.context - 1;
    static_cast<std::int64_t*>(parameters.out.data)[offset(parameters.out, b, i)] = clamped;
  }
}

// B6: B1-B5 as bools.
QUIRE_KERNEL(mask, TokensParameters) {
  const IndexView& index = parameters.index;
  const TensorView& out = parameters.out;
  const std::int64_t columns = out.sizes[2];
  const std::int64_t elements = batch_of(index) * seq_of(index) * columns;
  for (std::int64_t n = block() * threads() + thread(); n < elements; n += blocks() * threads()) {
    const std::int64_t c = n % columns, i = n / columns % seq_of(index), b = n / columns / seq_of(index);
    const std::int64_t least = is_draft(index) ? least_position(index, b) : -1;
    const std::int64_t column = is_selecting(index) ? choice_of(index, b, i, c) : c;  // B5
    static_cast<std::uint8_t*>(out.data)[offset(out, b, i, c)] = sees(index, b, i, column, least) ? 1 : 0;
  }
}

// A11: one past the lane's greatest position; a lane of padding goes to 0.
QUIRE_KERNEL(advance, TokensParameters) {
  const IndexView& index = parameters.index;
  std::int64_t* greatest = shared_memory<std::int64_t>();  // of each thread's tokens
  for (std::int64_t b = block(); b < batch_of(index); b += blocks()) {
    greatest[thread()] = -1;
    for (std::int64_t i = thread(); i < seq_of(index); i += threads()) {
      const std::int64_t t = position(index, b, i);
      if (t > greatest[thread()]) greatest[thread()] = t;
    }
    barrier();
    if (thread() == 0) {
      std::int64_t all = -1;
      for (int other = 0; other < threads(); ++other) all = greatest[other] > all ? greatest[other] : all;
      // Past the greatest number of all there is none; unsigned, the sum is defined.
      static_cast<std::int64_t*>(parameters.out.data)[offset(parameters.out, b, 0)] =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(all) + 1);
    }
    barrier();  // the next lane's numbers go where these stand
  }
}

}  // namespace quire::gpu
