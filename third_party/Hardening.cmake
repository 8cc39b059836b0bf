# pm_harden(TARGET) adds flags that make memory errors hard to exploit, for every target that links
# TARGET. The option PUMICE_HARDEN turns them on or off. A flag that the compiler lacks is left out.
#   stack protector      an overwritten stack ends the process
#   _FORTIFY_SOURCE      libc calls are checked when the compiler knows the size of the buffer; in
#                        build types that optimise; level 3 where the compiler has it; not under
#                        sanitizers, which check more
#   full RELRO           the table of library functions is read-only once the program has started
#   PIE                  the program is loaded at a random address
#   -fcf-protection      x86-64: indirect jumps and returns reach marked places only
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)
# Without this check CMake compiles position-independent code but links programs at fixed addresses.
check_pie_supported(LANGUAGES C)

# Sets `out` to the highest level of _FORTIFY_SOURCE that the compiler supports. The macro is
# undefined first, because the compilers of some distributions define it. A compiler without level 3
# treats it as level 2 without a warning, so a test program reads the level that is in effect.
function(pm_fortify_level out)
    set(CMAKE_REQUIRED_FLAGS "-O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
    check_c_source_compiles("
        #include <string.h>
        #if __USE_FORTIFY_LEVEL < 3
        #error this C library or compiler has level 2
        #endif
        int main(void) { return 0; }" PUMICE_FORTIFY_3)
    if(PUMICE_FORTIFY_3)
        set(${out} 3 PARENT_SCOPE)
    else()
        set(${out} 2 PARENT_SCOPE)
    endif()
endfunction()

# Also sets PUMICE_HARDENED in the caller's scope: a definition HARDENED_... for each measure that
# is on. executables_test compares them with the programs.
function(pm_harden target)
    set(on "")
    if(CMAKE_C_LINK_PIE_SUPPORTED)
        list(APPEND on HARDENED_PIE)
    endif()
    set(PUMICE_HARDENED ${on} PARENT_SCOPE)
    if(NOT PUMICE_HARDEN)
        return()
    endif()
    check_c_compiler_flag(-fstack-protector-strong PUMICE_STACK_PROTECTOR)
    if(PUMICE_STACK_PROTECTOR)
        target_compile_options(${target} INTERFACE -fstack-protector-strong)
        list(APPEND on HARDENED_STACK)
    endif()
    check_c_compiler_flag(-fcf-protection=full PUMICE_CF_PROTECTION)
    if(PUMICE_CF_PROTECTION AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
        target_compile_options(${target} INTERFACE -fcf-protection=full)
        list(APPEND on HARDENED_BRANCHES)
    endif()
    if(NOT PUMICE_SANITIZE AND NOT PUMICE_TSAN AND NOT PUMICE_FUZZ)
        pm_fortify_level(level)
        set(optimised "$<CONFIG:Release,RelWithDebInfo,MinSizeRel>")
        target_compile_options(${target} INTERFACE
            "$<${optimised}:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${level}>")
        list(APPEND on "$<${optimised}:HARDENED_FORTIFY>")
    endif()
    target_link_options(${target} INTERFACE LINKER:-z,relro LINKER:-z,now)
    set(PUMICE_HARDENED ${on} HARDENED_RELRO PARENT_SCOPE)
endfunction()
