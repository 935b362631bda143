// The arithmetic of a warp's operations. No function of the standard library: under the thread sanitizer it could be an instrumented copy.
#include "warp.h"

namespace quire::simt {

float sum_of_warp(float* values, int width) {
  // The tree adds to lane i the value of lane i ^ half, half = width / 2, ..., 1. Of lane 0's sum only the lanes below half are needed, and
  // addition commutes: so the other lanes' sums have the same bits.
  for (int half = width / 2; half > 0; half /= 2)
    for (int lane = 0; lane < half; ++lane) values[lane] += values[lane + half];
  return values[0];
}

namespace {
float larger(float a, float b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return __builtin_signbit(a) ? b : a;
  return a > b ? a : b;
}
}  // namespace

float max_of_warp(const float* values, int width) {
  float result = values[0];
  for (int lane = 1; lane < width; ++lane) result = larger(result, values[lane]);
  return result;
}

void shuffle_warp(float* values, const int* lanes, int width) {
  float sent[64];
  for (int lane = 0; lane < width; ++lane) sent[lane] = values[lane];
  for (int lane = 0; lane < width; ++lane) values[lane] = sent[lanes[lane]];
}

}  // namespace quire::simt
