// What a warp's operations compute, from the values of its threads.
#pragma once

namespace quire::simt {

/// The sum of `width` values in the order of the GPU's tree (gpu/dialect.h), as its lane 0 gets it. Overwrites them.
float sum_of_warp(float* values, int width);
/// The largest; a NaN counts only where all are. Of zeros +0 is the larger.
float max_of_warp(const float* values, int width);
/// values[i] becomes values[lanes[i]]. Lanes are of the warp.
void shuffle_warp(float* values, const int* lanes, int width);

}  // namespace quire::simt
