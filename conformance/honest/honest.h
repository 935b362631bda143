// An honest backend: every op in float32, in the ways that real kernels compute it, or with narrower operands or intermediates that it
// declares.
//
// Its errors are those of its arithmetic alone, so it shows where derived tolerances must not cry wolf; the mutants are made from it. It
// shares no code with the reference beyond what core gives every backend.
#pragma once

#include <quire/backend.h>

namespace quire::conformance {

/// How the float32 results are reached. Every choice computes the same laws.
struct HonestOptions {
  /// token: the recurrence as written. chunked: the WY representation, solved chunk by chunk.
  enum class Recurrence { token, chunked };
  /// direct: two passes. online: one pass with a running maximum. split: parts of the columns, merged by their maxima.
  enum class Attention { direct, online, split };
  /// What numbers are rounded to; sums are float32 always. half is half's significand and denormals: what is past its largest number is
  /// scaled by a power of two, since a contract states roundoffs and no range.
  enum class Format { float32, tf32, bf16, half };

  Recurrence recurrence = Recurrence::token;
  int chunk_length = 64;             ///< tokens, counted from a sequence's first new one; used where chunked
  bool decay_from_log_sums = false;  ///< decays within a chunk are exp(G_i - G_j) of sums of logs, else products
  Attention attention = Attention::direct;
  bool fma = false;            ///< a product and its addition round once
  bool reversed_sums = false;  ///< sums of products run from the last term to the first
  Format products = Format::float32;  ///< operands of products in sums
  Format stored = Format::float32;    ///< intermediates: states between tokens or chunks, what chunks add; weights, scores, parts
};

/// Runs an op on host tensors. Inputs are widened to float32 (float64 ones are rounded). Answers QUIRE_INTERNAL where memory is lacking.
quire_status honest_run(quire_op op, const void* args, const HonestOptions& options);

/// The unit roundoff of a format.
double roundoff(HonestOptions::Format format);

/// The arithmetic of those options for an op. Decode and verify go token by token whatever the options.
quire_contract honest_contract(const HonestOptions& options, quire_op op);

/// The backend `honest-f32`: the options as they stand by default.
const quire_backend_table* honest_backend();

}  // namespace quire::conformance
