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

# Without a card RADV leaks 256 bytes. It is unloaded before the search for leaks, so a suppression
# cannot name it.
function(pm_compile_test name label)
    add_test(NAME ${name} COMMAND ${ARGN})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 1800 LABELS "${label}"
        ENVIRONMENT "OMP_WAIT_POLICY=passive;ASAN_OPTIONS=detect_leaks=0")
endfunction()

# RADV's null device needs nothing but the machine's Mesa, so navi31 is a quick test.
pm_compile_test(compile_navi31 "" compile navi31)
if(PUMICE_SANITIZE OR PUMICE_TSAN)
    return() # the loaders and libraries of the other drivers do not know the sanitizers
endif()
pm_compile_test(compile_list "" compile --list)
foreach(driver polaris10 gfx1201 tgl dg2 bmg nvk170)
    pm_compile_test(compile_${driver} long compile ${driver})
endforeach()
foreach(driver vega20 navi21 phoenix skl nvk130 m1 adreno618 adreno740)
    pm_compile_test(compile_${driver} longest compile ${driver})
endforeach()
# Mesa 26 has no null device: RADV with the stand-in of AMD's kernel driver.
pm_compile_test(compile_navi31_stand_in longest compile --unpacked navi31)
