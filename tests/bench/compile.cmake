# compile compiles every pipeline with the compilers of GPU drivers, without the GPUs.
# ./dev test --all and ./dev bench compile run third_party/drivers.sh. It unpacks the drivers that
# the machine's Mesa lacks into this folder.
set(PUMICE_DRIVERS ${PROJECT_SOURCE_DIR}/build/drivers CACHE PATH "Drivers for the test compile")
add_executable(compile bench/compile.c bench/compile_calls.c bench/compile_drivers.c
    bench/compile_rules.c bench/executable.c layers/check_build.c layers/check_ref.c
    layers/check_run.c)
target_sources(compile PRIVATE ${LAYER_CASES})
target_include_directories(compile PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/shaders
    ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(compile PRIVATE PUMICE_DRIVERS_FOLDER="${PUMICE_DRIVERS}")
target_link_libraries(compile PRIVATE pumice_flags libpumice m)

set_property(TEST compile_test APPEND PROPERTY ENVIRONMENT "PUMICE_COMPILE=$<TARGET_FILE:compile>")
add_dependencies(compile_test compile)

# cost: seconds of processor time, as for pm_cost. Without a card RADV leaks 256 bytes. It is
# unloaded before the search for leaks, so a suppression cannot name it.
function(pm_compile_test name label cost)
    add_test(NAME ${name} COMMAND compile ${ARGN})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 3600 LABELS "${label}"
        COST ${cost} ENVIRONMENT "OMP_WAIT_POLICY=passive;ASAN_OPTIONS=detect_leaks=0")
endfunction()

# RADV's null device needs nothing but the machine's Mesa, so navi31 is a quick test.
pm_compile_test(compile_navi31 "" 19 navi31)
if(PUMICE_SANITIZE OR PUMICE_TSAN)
    return() # the loaders and libraries of the other drivers do not know the sanitizers
endif()
pm_compile_test(compile_list "" 2 --list)
pm_compile_test(compile_polaris10 long 15 polaris10)
pm_compile_test(compile_gfx1201 long 19 gfx1201)
pm_compile_test(compile_tgl long 34 tgl)
pm_compile_test(compile_dg2 long 43 dg2)
pm_compile_test(compile_bmg long 41 bmg)
pm_compile_test(compile_nvk170 long 45 nvk170)
pm_compile_test(compile_vega20 longest 15 vega20)
pm_compile_test(compile_navi21 longest 19 navi21)
pm_compile_test(compile_phoenix longest 15 phoenix)
pm_compile_test(compile_skl longest 36 skl)
pm_compile_test(compile_nvk130 longest 40 nvk130)
pm_compile_test(compile_nvk136 longest 40 nvk136)
pm_compile_test(compile_m1 longest 10 m1)
pm_compile_test(compile_adreno618 longest 30 adreno618)
pm_compile_test(compile_adreno740 longest 32 adreno740)
# Mesa 26 has no null device: RADV with the stand-in of AMD's kernel driver.
pm_compile_test(compile_navi31_stand_in longest 15 --unpacked navi31)
# Another lavapipe than the machine's: parity of every layer's kernels.
pm_compile_test(check_parity_lavapipe26 long 360 --run lavapipe26 $<TARGET_FILE:check> parity)
set_property(TEST check_parity_lavapipe26 APPEND PROPERTY ENVIRONMENT "PM_VALIDATE=1")
