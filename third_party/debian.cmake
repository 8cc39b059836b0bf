# cpack runs this script on the installed files before it packs them. It does what Debian's policy
# requires: it compresses manual pages and adds a changelog and a copyright file to each package.
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(GLOB packages LIST_DIRECTORIES true ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/*)
foreach(package ${packages})
    file(GLOB pages ${package}/usr/share/man/man1/*.1)
    if(pages)
        execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
    endif()
    get_filename_component(component ${package} NAME)
    set(name pumice)
    if(component STREQUAL "development")
        set(name libpumice-dev)
    elseif(component STREQUAL "mpi")
        set(name pumice-mpi)
    endif()
    set(doc ${package}/usr/share/doc/${name})
    file(MAKE_DIRECTORY ${doc})
    file(REMOVE ${doc}/LICENSE) # the copyright file refers to Debian's own copy of the licence
    file(WRITE ${doc}/changelog "pumice (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
        "  * CHANGELOG.md of the pumice package says what this version has.\n\n"
        " -- ${CPACK_PACKAGE_CONTACT}  ${now}\n")
    execute_process(COMMAND gzip -9nf ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
    file(COPY_FILE ${CMAKE_CURRENT_LIST_DIR}/debian.copyright ${doc}/copyright)
endforeach()
