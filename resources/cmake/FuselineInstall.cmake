# What "cmake --install" puts where: programs, examples, schema, manual pages, and what shells and desktops need to know.
# SPDX-License-Identifier: Apache-2.0
foreach(program fuseline fuseline-designer)
  if(TARGET ${program})
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

foreach(folder examples schema help)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/resources/${folder} DESTINATION ${CMAKE_INSTALL_DATADIR}/fuseline OPTIONAL
          PATTERN README.md EXCLUDE)
endforeach()
install(FILES resources/te/to_fuseline.py DESTINATION ${CMAKE_INSTALL_DATADIR}/fuseline/te)
# Pages and pictures stand where the README's links lead.
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY resources/guide DESTINATION ${CMAKE_INSTALL_DOCDIR}/resources)
install(DIRECTORY resources/pictures DESTINATION ${CMAKE_INSTALL_DOCDIR}/resources)
install(FILES resources/desktop/fuseline.bash-completion
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME fuseline)
install(FILES resources/desktop/fuseline.zsh-completion
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _fuseline)
install(FILES resources/desktop/fuseline.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${FUSELINE_MANUALS} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES resources/desktop/org.fuseline.pipeline.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/mime/packages)
install(FILES resources/desktop/application-vnd.fuseline.pipeline+json.svg
              resources/desktop/application-vnd.fuseline.run+json.svg
        DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/mimetypes)

if(FUSELINE_DESIGNER)
  install(FILES resources/desktop/org.fuseline.designer.desktop DESTINATION ${CMAKE_INSTALL_DATADIR}/applications)
  install(FILES resources/desktop/org.fuseline.designer.metainfo.xml DESTINATION ${CMAKE_INSTALL_DATADIR}/metainfo)
  install(FILES resources/desktop/org.fuseline.designer.svg
          DESTINATION ${CMAKE_INSTALL_DATADIR}/icons/hicolor/scalable/apps)
endif()
