# What the plugins cuda and hip have in common beside the kernels: planning and the table, and the runtime over the vendor's names.
include(${CMAKE_CURRENT_LIST_DIR}/../sources.cmake)
set(QUIRE_GPU_DEVICE_SOURCES
  ${CMAKE_CURRENT_LIST_DIR}/devices.cpp ${CMAKE_CURRENT_LIST_DIR}/launches.cpp ${CMAKE_CURRENT_LIST_DIR}/memory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/streams.cpp ${CMAKE_CURRENT_LIST_DIR}/vendor_call.cpp)

# Whether a plugin for a GPU is asked for in this build: not in one for another machine, with sanitizers, or for fuzzing.
set(QUIRE_BUILDS_GPU ON)
if(QUIRE_GPU STREQUAL "OFF" OR QUIRE_SANITIZE OR QUIRE_FUZZERS OR CMAKE_CROSSCOMPILING)
  set(QUIRE_BUILDS_GPU OFF)
endif()

if(QUIRE_BUILDS_GPU AND NOT TARGET quire_gpu_host)
  add_library(quire_gpu_host OBJECT EXCLUDE_FROM_ALL ${QUIRE_GPU_HOST_SOURCES})
  set_target_properties(quire_gpu_host PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(quire_gpu_host PRIVATE ${PROJECT_SOURCE_DIR}/core/include)
  target_link_libraries(quire_gpu_host PRIVATE quire_options quire_fmt)
endif()
