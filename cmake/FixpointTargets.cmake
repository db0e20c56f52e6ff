# What every target shares, and one function for each kind of target:
#   fixpoint_library(<folder> HEADERS … SOURCES … DEPENDS …)   static library fixpoint_<folder>, headers verified alone
#   fixpoint_test(<name> SOURCES … DEPENDS … [DEFINITIONS …] [LABELS …] [CONCURRENT] [ENVIRONMENT …])
#   fixpoint_fuzzer(<name> SOURCES … DEPENDS … [CORPUS dir])

add_library(fixpoint_flags INTERFACE)
target_compile_options(fixpoint_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees these inside its own std::string, where it inlines much (GCC bugs 105651, 105329).
  target_compile_options(fixpoint_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-array-bounds -Wno-restrict -Wno-stringop-overflow>)
endif()
if(DEFINED ENV{CI} OR FIXPOINT_WERROR)
  target_compile_options(fixpoint_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Werror>)
  target_compile_options(fixpoint_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-error=stringop-overread -Wno-error=maybe-uninitialized
    -Wno-error=dangling-pointer>)
endif()
target_include_directories(fixpoint_flags INTERFACE ${PROJECT_SOURCE_DIR})

if(SANITIZE)
  target_compile_options(fixpoint_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1>)
  target_link_options(fixpoint_flags INTERFACE -fsanitize=${SANITIZE})
  if(SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ warns that TSan does not model the fences inside Boost.
    target_compile_options(fixpoint_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
endif()
if(FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FUZZ=ON needs clang: cmake --preset fuzz")
  endif()
  target_compile_options(fixpoint_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -g1>)
  target_link_options(fixpoint_flags INTERFACE -fsanitize=address,undefined)
endif()

function(fixpoint_library folder)
  cmake_parse_arguments(arg "" "" "HEADERS;SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(target fixpoint_${folder})
  add_library(${target} STATIC ${arg_SOURCES})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
  target_link_libraries(${target} PUBLIC fixpoint_flags ${arg_DEPENDS} PRIVATE ${arg_PRIVATE_DEPENDS})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
endfunction()

function(fixpoint_test name)
  cmake_parse_arguments(arg "CONCURRENT" "TIMEOUT" "SOURCES;DEPENDS;DEFINITIONS;LABELS;ENVIRONMENT" ${ARGN})
  # A TSan build is about threads: it holds the tests that have some.
  if(SANITIZE MATCHES "thread" AND NOT arg_CONCURRENT)
    return()
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(${name} ${arg_SOURCES})
  # Optimising the tests themselves costs more time than it saves.
  target_compile_options(${name} PRIVATE -O1)
  target_compile_definitions(${name} PRIVATE ${arg_DEFINITIONS})
  target_link_libraries(${name} PRIVATE fixpoint_flags ${arg_DEPENDS} GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name} REUSE_FROM fixpoint_pch_gtest)
  # All tests of a label: cmake --build … --target tests_unit
  foreach(label ${arg_LABELS})
    if(NOT TARGET tests_${label})
      add_custom_target(tests_${label})
    endif()
    add_dependencies(tests_${label} ${name})
  endforeach()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST NO_PRETTY_VALUES
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${arg_ENVIRONMENT}"
               SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endfunction()

# A fuzzer runs over its seed corpus for a bounded number of inputs in the tests; by hand, run it as long as you like.
function(fixpoint_fuzzer name)
  cmake_parse_arguments(arg "" "CORPUS;RUNS" "SOURCES;DEPENDS" ${ARGN})
  if(NOT FUZZ)
    return()
  endif()
  if(NOT arg_RUNS)
    set(arg_RUNS 20000)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE fixpoint_flags ${arg_DEPENDS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set(corpus)
  if(arg_CORPUS)
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${name}_found)
    set(corpus ${CMAKE_CURRENT_BINARY_DIR}/${name}_found ${arg_CORPUS})
  endif()
  add_test(NAME ${name} COMMAND ${name} -runs=${arg_RUNS} -max_total_time=20 -rss_limit_mb=2048 -timeout=10 -seed=1 ${corpus})
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 120)
endfunction()
