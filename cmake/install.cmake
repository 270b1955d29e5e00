# What find_package(argosy CONFIG) finds: the public headers, the static libraries of all layers, and argosy::argosy, which
# links them. cmake --install BUILD --prefix PREFIX --component development
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

add_library(argosy_library INTERFACE)
set_target_properties(argosy_library PROPERTIES EXPORT_NAME argosy)
target_link_libraries(argosy_library INTERFACE argosy_api)
# Public headers are found as <argosy/exporter.h>; the second folder is for the few of the library that they include.
target_include_directories(argosy_library INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/argosy>)

get_property(third_party GLOBAL PROPERTY argosy_third_party_targets)
install(TARGETS ${third_party} argosy_library argosy_options argosy_protozero argosy_flatbuffers argosy_base argosy_tensor argosy_io argosy_ir argosy_passes argosy_border argosy_engines
                argosy_frontends argosy_pt2 argosy_onnx argosy_executorch argosy_cache argosy_debug argosy_driver argosy_inspect argosy_api
        EXPORT argosyTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(EXPORT argosyTargets NAMESPACE argosy:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/argosy COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/argosy DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/src/base/error.h ${PROJECT_SOURCE_DIR}/src/base/result.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/argosy/base COMPONENT development)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/argosyConfig.cmake.in ${PROJECT_BINARY_DIR}/argosyConfig.cmake
                              INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/argosy)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/argosyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/argosyConfig.cmake ${PROJECT_BINARY_DIR}/argosyConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/argosy COMPONENT development)
