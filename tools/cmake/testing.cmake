# One test program per folder, its cases registered with CTest.
add_library(quire_doctest_main OBJECT tools/tests/doctest_main.cpp)
target_link_libraries(quire_doctest_main PRIVATE quire_options doctest::doctest)

# quire_test(<name> <libraries> SOURCES <files>)
function(quire_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE quire_options quire_doctest_main doctest::doctest ${ARG_LIBRARIES})
  # -O1 compiles doctest's macros in a third of the time.
  target_compile_options(${name} PRIVATE -O1)
  if(QUIRE_SANITIZE MATCHES "undefined")
    # What is tested has every check; those of undefined behaviour in doctest's macros would take two fifths of a build's time.
    target_compile_options(${name} PRIVATE -fno-sanitize=undefined)
  endif()
  add_test(NAME ${name} COMMAND ${name})
endfunction()
