// Memory that is reserved and not used: pools of zeros so large that only the rows a case names are touched.
#pragma once

#include <quire/tensor.h>

#include <cstddef>
#include <utility>
#include <vector>

namespace quire::conformance {

/// A dense tensor of zero bits whose memory is taken page by page when it is written. Reading or writing outside it ends the process.
/// Raises invalid_argument naming `argument` beyond 2^40 bytes, unavailable where it can't be reserved.
Tensor reserve_tensor(DType dtype, Shape shape, std::string_view argument);

/// Whether memory of so many bytes is treated as reserved: not copied and not looked through whole.
inline bool is_reserved_size(std::size_t bytes) { return bytes >= std::size_t{1} << 30; }

/// The byte ranges [begin, end) of memory that are in use, in order; the rest holds zeros. For memory of `reserve_tensor`.
std::vector<std::pair<std::size_t, std::size_t>> used_ranges(const std::byte* memory, std::size_t bytes);

}  // namespace quire::conformance
