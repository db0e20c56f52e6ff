# Precompiled headers for the two heavy header-only libraries. A library that uses one says
#   target_precompile_headers(<target> REUSE_FROM fixpoint_pch_json)   or   fixpoint_pch_boost
# (fixpoint_pch_boost holds both). What is fixpoint_hot says ${FIXPOINT_PCH_JSON_HOT}.
file(WRITE ${CMAKE_BINARY_DIR}/generated/pch.cpp.in "namespace { [[maybe_unused]] int precompiled; }\n")
configure_file(${CMAKE_BINARY_DIR}/generated/pch.cpp.in ${CMAKE_BINARY_DIR}/generated/pch.cpp COPYONLY)

function(fixpoint_pch_json_as target)
  add_library(${target} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/pch.cpp)
  target_link_libraries(${target} PUBLIC fixpoint_flags nlohmann_json::nlohmann_json)
  target_precompile_headers(${target} PRIVATE <nlohmann/json.hpp> <string> <vector> <map> <memory> <functional>)
endfunction()

fixpoint_pch_json_as(fixpoint_pch_json)
# A precompiled header serves those that are optimised as it is.
set(FIXPOINT_PCH_JSON_HOT fixpoint_pch_json)
if(QUICK_BUILD)
  set(FIXPOINT_PCH_JSON_HOT fixpoint_pch_json_hot)
  fixpoint_pch_json_as(fixpoint_pch_json_hot)
  fixpoint_hot(fixpoint_pch_json_hot)
endif()

add_library(fixpoint_pch_boost OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/pch.cpp)
target_link_libraries(fixpoint_pch_boost PUBLIC fixpoint_flags nlohmann_json::nlohmann_json Boost::headers
                                                OpenSSL::SSL Threads::Threads)
target_precompile_headers(fixpoint_pch_boost PRIVATE
  <boost/asio.hpp> <boost/asio/ssl.hpp> <boost/beast.hpp> <boost/beast/ssl.hpp> <nlohmann/json.hpp>
  <string> <vector> <map> <memory> <functional>)
