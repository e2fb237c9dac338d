# What "cmake --build --preset release --target package" makes: a .deb, whose dependencies are derived from the programs,
# and a .tar.xz that may be unpacked anywhere, with Qt and all other libraries but the C library.
# SPDX-License-Identifier: Apache-2.0
set(CPACK_PACKAGE_NAME fuseline)
set(CPACK_PACKAGE_VENDOR Fuseline)
set(CPACK_PACKAGE_CONTACT "The Fuseline authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Design, fuse, run and measure pipelines of TransformerEngine-style ops")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_GENERATOR DEB TXZ)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# Libraries that are opened by name: Graphviz's layouts and Qt's icons. CUDA's are opened where they are.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "graphviz, qt6-svg-plugins | libqt6svg6")
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/resources/cmake/PackageKind.cmake)

# The folder of libraries beside the programs: empty but for the CUDA module in the .deb. A RPATH, not a RUNPATH, which
# would not hold for the libraries of libraries.
foreach(program fuseline fuseline-designer)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/../lib/fuseline")
    target_link_options(${program} PRIVATE -Wl,--disable-new-dtags)
    list(APPEND packaged_programs $<TARGET_FILE:${program}>)
  endif()
endforeach()

if(packaged_programs)
  set(qt_plugins "")
  if(FUSELINE_DESIGNER)
    find_package(Qt6 REQUIRED COMPONENTS Core)
    set(qt_plugins ${QT6_INSTALL_PREFIX}/${QT6_INSTALL_PLUGINS})
  endif()
  list(JOIN packaged_programs " " packaged_programs)
  install(CODE "set(programs ${packaged_programs})\nset(qt_plugins \"${qt_plugins}\")" COMPONENT bundle EXCLUDE_FROM_ALL)
  install(SCRIPT ${PROJECT_SOURCE_DIR}/resources/cmake/BundleLibraries.cmake COMPONENT bundle EXCLUDE_FROM_ALL)
endif()
include(CPack)
