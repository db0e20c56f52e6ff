# Precompiled headers for the two heavy header-only libraries. A library that uses one says
#   target_precompile_headers(<target> REUSE_FROM fixpoint_pch_json)   or   fixpoint_pch_boost
# (fixpoint_pch_boost holds both).
file(WRITE ${CMAKE_BINARY_DIR}/generated/pch.cpp.in "namespace { [[maybe_unused]] int precompiled; }\n")
configure_file(${CMAKE_BINARY_DIR}/generated/pch.cpp.in ${CMAKE_BINARY_DIR}/generated/pch.cpp COPYONLY)

add_library(fixpoint_pch_json OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/pch.cpp)
target_link_libraries(fixpoint_pch_json PUBLIC fixpoint_flags nlohmann_json::nlohmann_json)
target_precompile_headers(fixpoint_pch_json PRIVATE <nlohmann/json.hpp> <string> <vector> <map> <memory> <functional>)
# g++ 12 dies over a file that is optimised more than the header that it uses.
fixpoint_hot(fixpoint_pch_json)

add_library(fixpoint_pch_boost OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/generated/pch.cpp)
target_link_libraries(fixpoint_pch_boost PUBLIC fixpoint_flags nlohmann_json::nlohmann_json Boost::headers
                                                OpenSSL::SSL Threads::Threads)
target_precompile_headers(fixpoint_pch_boost PRIVATE
  <boost/asio.hpp> <boost/asio/ssl.hpp> <boost/beast.hpp> <boost/beast/ssl.hpp> <nlohmann/json.hpp>
  <string> <vector> <map> <memory> <functional>)
