# Compiler options of every target, and the small functions that the folders' lists are written with.
include(GNUInstallDirs)

add_library(quire_options INTERFACE)
# No contraction: the same source gives the same bits on every machine (design: numerics).
target_compile_options(quire_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion> $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off>)
if(QUIRE_WERROR)
  target_compile_options(quire_options INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(QUIRE_SANITIZE)
  target_compile_options(quire_options INTERFACE -fsanitize=${QUIRE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(quire_options INTERFACE -fsanitize=${QUIRE_SANITIZE})
endif()

if(QUIRE_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)  # coverage in the library too
endif()

find_program(QUIRE_CCACHE ccache)
if(QUIRE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${QUIRE_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${QUIRE_CCACHE})
endif()

# The installed tree may be moved: each binary finds its libraries relative to itself.
set(CMAKE_INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR};$ORIGIN")
