# Rules of cmake --install and cpack. There are three components: program (the command, configs,
# pages), development (the library) and mpi (the plug-in, so that the program needs no MPI).
include(GNUInstallDirs)
install(TARGETS pumice COMPONENT program)
if(TARGET pumice_mpi)
    install(TARGETS pumice_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/pumice COMPONENT mpi)
endif()
install(TARGETS libpumice COMPONENT development)
install(DIRECTORY include/pumice TYPE INCLUDE COMPONENT development)
set(PUMICE_PC_LIBS "-lsnappy -lm -lpthread -ldl")
if(OpenMP_C_FOUND)
    string(PREPEND PUMICE_PC_LIBS "${OpenMP_C_FLAGS} ")
endif()
if(DNNL_INCLUDE AND DNNL_LIBRARY)
    string(PREPEND PUMICE_PC_LIBS "-ldnnl ")
endif()
# The path is relative, so that it stays correct for a folder given to cmake --install.
file(RELATIVE_PATH PUMICE_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(third_party/pumice.pc.in pumice.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pumice.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT development)

# The program writes manual pages and completion scripts from its own tables.
set(PAGES ${PROJECT_BINARY_DIR}/pages)
add_custom_command(OUTPUT ${PAGES}/made
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${PAGES}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PAGES}/man1
    COMMAND pumice help --man ${PAGES}/man1
    COMMAND pumice help --completion bash > ${PAGES}/pumice
    COMMAND pumice help --completion zsh > ${PAGES}/_pumice
    COMMAND pumice help --completion fish > ${PAGES}/pumice.fish
    COMMAND ${CMAKE_COMMAND} -E touch ${PAGES}/made
    DEPENDS pumice VERBATIM)
add_custom_target(pumice_pages ALL DEPENDS ${PAGES}/made)
install(DIRECTORY ${PAGES}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT program)
install(FILES ${PAGES}/pumice DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    COMPONENT program)
install(FILES ${PAGES}/_pumice DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
    COMPONENT program)
install(FILES ${PAGES}/pumice.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
    COMPONENT program)

# Configs name others of the same folder as "base", so the whole folder is installed.
install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/pumice COMPONENT program)
install(FILES README.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
foreach(file LICENSE NOTICE CHANGELOG.md docs)
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${file})
        install(DIRECTORY ${file} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
    elseif(EXISTS ${PROJECT_SOURCE_DIR}/${file})
        install(FILES ${file} DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
    endif()
endforeach()

# ---- cpack: Debian packages --------------------------------------------------------------------

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME pumice)
set(CPACK_PACKAGE_VENDOR "The Pumice authors")
set(CPACK_PACKAGE_CONTACT "The Pumice authors <pumice@localhost>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL program development)
if(TARGET pumice_mpi)
    list(APPEND CPACK_COMPONENTS_ALL mpi)
endif()
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME pumice)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION science)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "Pumice trains image classifiers and segmentation nets from one JSON file, on
every GPU that has a Vulkan or OpenCL driver and on the CPU. It evaluates,
predicts and exports ONNX models.")
# dpkg-shlibdeps finds the linked libraries only. The packages named here hold the variant of
# OpenBLAS whose folder stands in the program's run path, libraries that the program opens while it
# runs, and drivers of GPUs.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "libopenblas0-openmp, libvulkan1")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS
    "libcurl4, libarchive13, libxml2, libyaml-0-2, libwebp7, libwebpdemux2, libtiff6, libheif1, \
libfreetype6, fonts-dejavu-core, libutf8proc2 | libutf8proc3, ca-certificates, \
mesa-vulkan-drivers, \
ocl-icd-libopencl1 | libopencl1")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libpumice-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libcjson-dev, libopenblas-openmp-dev, \
libprotobuf-c-dev, libpcre2-dev, libpng-dev, zlib1g-dev, libsnappy-dev")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION
    "The static library libpumice, its headers and its pkg-config file, for programs
that train or run nets themselves.")
set(CPACK_DEBIAN_MPI_PACKAGE_NAME pumice-mpi)
set(CPACK_DEBIAN_MPI_PACKAGE_SECTION science)
set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "pumice (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_MPI_DESCRIPTION
    "The plug-in of Pumice for training on several machines, through MPI.")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/third_party/debian.cmake)
include(CPack)
