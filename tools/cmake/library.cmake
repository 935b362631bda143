# The library quire: core with the reference registered as a built-in backend; installed with a CMake package and a pkg-config file.
option(BUILD_SHARED_LIBS "Build quire as a shared library" ON)
add_library(quire reference/src/built_in.cpp)
add_library(quire::quire ALIAS quire)
set_target_properties(quire PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
target_link_libraries(quire PRIVATE $<BUILD_INTERFACE:quire_options> $<BUILD_INTERFACE:quire_core> $<BUILD_INTERFACE:quire_reference> $<BUILD_INTERFACE:quire_fmt> Threads::Threads ${CMAKE_DL_LIBS})
if(TARGET quire-probe)
  add_dependencies(quire quire-probe)  # what is there with the library finds plugins
endif()
if(TBB_FOUND)
  target_link_libraries(quire PRIVATE TBB::tbb)
endif()
if(TARGET quire_fmt_objects AND NOT BUILD_SHARED_LIBS)
  target_sources(quire PRIVATE $<TARGET_OBJECTS:quire_fmt_objects>)  # nobody installs quire_fmt
endif()
target_include_directories(quire PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/core/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(quire PUBLIC cxx_std_20)

include(CMakePackageConfigHelpers)
set(QUIRE_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/quire)
install(TARGETS quire EXPORT quire-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY core/include/quire DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT quire-targets NAMESPACE quire:: DESTINATION ${QUIRE_PACKAGE_DIR})
configure_package_config_file(tools/cmake/quire-config.cmake.in ${CMAKE_BINARY_DIR}/quire-config.cmake INSTALL_DESTINATION ${QUIRE_PACKAGE_DIR})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/quire-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/quire-config.cmake ${CMAKE_BINARY_DIR}/quire-config-version.cmake DESTINATION ${QUIRE_PACKAGE_DIR})
# The prefix as seen from lib[/<arch>]/pkgconfig, so that the tree can be moved.
file(RELATIVE_PATH QUIRE_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(tools/cmake/quire.pc.in ${CMAKE_BINARY_DIR}/quire.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/quire.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(TBB_FOUND AND BUILD_SHARED_LIBS)
  # The installed tree may be carried to a machine without oneTBB.
  install(IMPORTED_RUNTIME_ARTIFACTS TBB::tbb LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
