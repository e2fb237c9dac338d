# Installs the libraries of the programs and Qt's plugins beside them. Given: programs, and qt_plugins, the folder of Qt's
# plugins, empty without the designer.
# SPDX-License-Identifier: Apache-2.0
set(folder ${CMAKE_INSTALL_PREFIX}/lib/fuseline)

# Windows, also without a display or on Wayland; icons, pictures and printers.
set(plugins "")
if(qt_plugins)
  file(GLOB plugins ${qt_plugins}/platforms/libqxcb.so ${qt_plugins}/platforms/libqoffscreen.so
       ${qt_plugins}/platforms/libqwayland*.so ${qt_plugins}/wayland-shell-integration/*.so
       ${qt_plugins}/platforminputcontexts/*.so ${qt_plugins}/iconengines/*.so ${qt_plugins}/imageformats/*.so
       ${qt_plugins}/printsupport/*.so)
endif()

if(qt_plugins AND NOT EXISTS ${qt_plugins}/platforms/libqxcb.so)
  message(FATAL_ERROR "Qt's plugins: found no platforms/libqxcb.so in ${qt_plugins}. Install Qt's X11 plugin.")
endif()

# Those of the C library come with every system, and must be of one version.
file(GET_RUNTIME_DEPENDENCIES
  EXECUTABLES ${programs}
  MODULES ${plugins}
  RESOLVED_DEPENDENCIES_VAR libraries
  UNRESOLVED_DEPENDENCIES_VAR missing
  PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|dl|rt|pthread|resolv|util|anl|nsl|mvec)\\.so" "^libcuda\\.so" "^libnvidia")
if(missing)
  message(FATAL_ERROR "Libraries of the programs: not found: ${missing}.")
endif()
file(INSTALL ${libraries} DESTINATION ${folder} FOLLOW_SYMLINK_CHAIN)
foreach(plugin IN LISTS plugins)
  file(RELATIVE_PATH place ${qt_plugins} ${plugin})
  get_filename_component(place ${place} DIRECTORY)
  file(INSTALL ${plugin} DESTINATION ${folder}/plugins/${place})
endforeach()
if(plugins)
  file(WRITE $ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/bin/qt.conf "[Paths]\nPrefix = ..\nPlugins = lib/fuseline/plugins\n")
endif()
