// The line that says how far long work has come.
#include "src/progress.h"

#include <doctest/doctest.h>

TEST_CASE("progress: share done and time left") {
  using quire::tools::progress_text;
  CHECK(progress_text(0, 1000, 0, "1:attend:0") == "0 % of 1000: 1:attend:0");
  CHECK(progress_text(500, 1000, 0.5, "x") == "50 % of 1000: x");  // too soon to say
  CHECK(progress_text(250, 1000, 10, "x") == "25 % of 1000, 30 s left: x");
  CHECK(progress_text(10, 1000, 10, "x") == "1 % of 1000, 17 min left: x");
  CHECK(progress_text(1200, 1000, 10, "x") == "120 % of 1000, 0 s left: x");
  CHECK(progress_text(0, 0, 10, "x") == "x");
}
