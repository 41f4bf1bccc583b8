set(STOF_FUZZ_SECONDS 60 CACHE STRING "How long each fuzz test runs")

target_compile_options(stof PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link>)  # what the fuzzer watches
add_custom_target(fuzz)

# stof_fuzz_test(<name>) - <name>_fuzz.cpp as a libFuzzer program and a ctest entry, with the seeds in
# corpus/<name>/ and, where there is one, the dictionary <name>.dict. What it finds is kept below the
# build folder for the next run; what fails lies there in artifacts/, by the name that is printed.
function(stof_fuzz_test name)
    set(program fuzz.${name})
    add_executable(${program} ${name}_fuzz.cpp)
    target_link_libraries(${program} PRIVATE stof stof_internal)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz ${program})

    set(found ${CMAKE_CURRENT_BINARY_DIR}/corpus/${name})
    set(artifacts ${CMAKE_CURRENT_BINARY_DIR}/artifacts)
    file(MAKE_DIRECTORY ${found} ${artifacts})
    set(dictionary ${CMAKE_CURRENT_SOURCE_DIR}/${name}.dict)
    if (EXISTS ${dictionary})
        set(dictionary_option -dict=${dictionary})
    endif ()
    add_test(NAME ${program}
        COMMAND ${program} -max_total_time=${STOF_FUZZ_SECONDS} -timeout=10 -rss_limit_mb=2048
            -malloc_limit_mb=256 -max_len=16384 -print_final_stats=1 ${dictionary_option}
            -artifact_prefix=${artifacts}/${name}- ${found} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}
    )
    math(EXPR limit "${STOF_FUZZ_SECONDS} + 120")
    set_tests_properties(${program} PROPERTIES LABELS fuzz TIMEOUT ${limit})
endfunction()
