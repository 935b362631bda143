# Backend plugins: one shared object each, found by the library at run time, that exports one function and sees one header.

# quire_module(<target> <folder> <sources...>): <folder>/<target>.so, which exports quire_backend_query and nothing else of its own.
function(quire_module target folder)
  add_library(${target} MODULE ${ARGN})
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX ".so" LIBRARY_OUTPUT_DIRECTORY ${folder} POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON LINK_DEPENDS ${QUIRE_PLUGIN_MAP})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/core/include)
  target_link_libraries(${target} PRIVATE quire_options)
  target_link_options(${target} PRIVATE -Wl,--exclude-libs,ALL -Wl,--version-script=${QUIRE_PLUGIN_MAP})
  if(NOT QUIRE_SANITIZE)
    target_link_options(${target} PRIVATE -Wl,--no-undefined)  # a sanitizer's runtime comes with the process
  endif()
endfunction()

# quire_plugin(quire_<name> <sources...>): the plugin quire_<name>.so, where the library looks for plugins in the build tree and when installed.
# The target takes target_link_libraries, target_compile_options, ... like any other. A build in which it exports anything but
# quire_backend_query fails.
function(quire_plugin target)
  if(NOT target MATCHES "^quire_[a-z0-9_-]+$")
    message(FATAL_ERROR "quire_plugin: \"${target}\"; allowed: quire_ and the backend's name in small letters, digits, - and _")
  endif()
  quire_module(${target} ${QUIRE_PLUGIN_FOLDER} ${ARGN})
  # The build tree's folders lie as the installed ones do, so it is one file in both.
  set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../.." BUILD_WITH_INSTALL_RPATH ON)
  add_custom_command(TARGET ${target} POST_BUILD VERBATIM
    COMMAND ${CMAKE_COMMAND} -DNM=${CMAKE_NM} -DFILE=$<TARGET_FILE:${target}> -P ${PROJECT_SOURCE_DIR}/tools/cmake/exports.cmake)
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/quire/backends)
endfunction()

set(QUIRE_PLUGIN_FOLDER ${CMAKE_BINARY_DIR}/lib/quire/backends)
set(QUIRE_PLUGIN_MAP ${PROJECT_SOURCE_DIR}/tools/cmake/plugin.map)
