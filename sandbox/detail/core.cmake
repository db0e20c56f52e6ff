# The broker is one small static executable, the same in every build: sanitizers do not go together with children that share
# their parent's memory, and its size is part of what a launch costs. The library carries its bytes.
add_executable(fixpoint_sandbox_broker
  detail/broker_main.cpp detail/broker.cpp detail/cell.cpp detail/target.cpp detail/box_files.cpp detail/probe.cpp
  detail/host.cpp detail/namespaces.cpp detail/rootfs.cpp detail/cgroups.cpp detail/cgroup_mounts.cpp detail/limits.cpp
  detail/privileges.cpp detail/landlock.cpp detail/channel.cpp detail/frame.cpp)
target_include_directories(fixpoint_sandbox_broker PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(fixpoint_sandbox_broker PRIVATE -O2 -fno-pie -Wall -Wextra -Wshadow -fno-exceptions)
if(DEFINED ENV{CI} OR FIXPOINT_WERROR)
  target_compile_options(fixpoint_sandbox_broker PRIVATE -Werror)
endif()
target_link_options(fixpoint_sandbox_broker PRIVATE -static -no-pie -s)
target_link_libraries(fixpoint_sandbox_broker PRIVATE tl::expected)
set_target_properties(fixpoint_sandbox_broker PROPERTIES
  POSITION_INDEPENDENT_CODE OFF RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

target_sources(fixpoint_sandbox PRIVATE
  syscall_policy.cpp toolchain.cpp sandbox.cpp
  detail/broker_process.cpp detail/embedded_broker.cpp detail/launcher.cpp detail/monitor.cpp detail/probing.cpp
  detail/compile_cache.cpp detail/seccomp_filter.cpp detail/channel.cpp detail/frame.cpp detail/cgroups.cpp
  detail/cgroup_mounts.cpp detail/box_files.cpp)
set(broker_file ${CMAKE_CURRENT_BINARY_DIR}/fixpoint_sandbox_broker)
set_source_files_properties(detail/embedded_broker.cpp PROPERTIES
  COMPILE_DEFINITIONS FIXPOINT_BROKER_FILE="${broker_file}" OBJECT_DEPENDS ${broker_file})
add_dependencies(fixpoint_sandbox fixpoint_sandbox_broker)
