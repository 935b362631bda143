// Which devices the code of a list runs on, by the CUDA programming guide's rules of binary and PTX compatibility.
#include <doctest/doctest.h>

#include "cuda/architectures.h"

using quire::gpu::runs_on;

TEST_CASE("machine code runs on its own major number, from its minor number on") {
  CHECK(runs_on("80-real", 8, 0));
  CHECK(runs_on("80-real", 8, 6));
  CHECK(runs_on("80-real", 8, 9));
  CHECK_FALSE(runs_on("86-real", 8, 0));
  CHECK_FALSE(runs_on("80-real", 7, 5));
  CHECK_FALSE(runs_on("80-real", 9, 0));
  CHECK(runs_on("100-real", 10, 3));
  CHECK_FALSE(runs_on("100-real", 12, 0));
}

TEST_CASE("machine code of an architecture with an a runs on that one alone, and so does its PTX") {
  CHECK(runs_on("90a-real", 9, 0));
  CHECK_FALSE(runs_on("100a-real", 10, 3));
  CHECK_FALSE(runs_on("90a-virtual", 10, 0));
  CHECK_FALSE(runs_on("90a", 12, 0));
}

TEST_CASE("PTX runs on every later device") {
  CHECK(runs_on("120-virtual", 12, 1));
  CHECK(runs_on("80-virtual", 9, 0));
  CHECK(runs_on("80", 12, 0));
  CHECK_FALSE(runs_on("120-virtual", 10, 0));
  CHECK_FALSE(runs_on("80", 7, 5));
}

TEST_CASE("a list runs where one of its entries does") {
  constexpr auto list = "80-real 90a-real 100-real 120-real 120-virtual";
  CHECK(runs_on(list, 8, 9));
  CHECK(runs_on(list, 9, 0));
  CHECK(runs_on(list, 10, 0));
  CHECK(runs_on(list, 12, 1));
  CHECK(runs_on(list, 13, 0));
  CHECK_FALSE(runs_on(list, 7, 5));
  CHECK_FALSE(runs_on(list, 11, 0));
  CHECK_FALSE(runs_on("", 8, 0));
}
