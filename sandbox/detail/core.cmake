# The broker is one small static executable, the same in every build: sanitizers do not go together with children that share
# their parent's memory, and its size is part of what a launch costs. The library carries its bytes.
add_executable(fixpoint_sandbox_broker
  detail/broker_main.cpp detail/own_text.cpp detail/broker.cpp detail/zygotes.cpp detail/cell.cpp detail/waiting_program.cpp detail/target.cpp detail/box_files.cpp detail/probe.cpp
  detail/host.cpp detail/namespaces.cpp detail/rootfs.cpp detail/place.cpp detail/slots.cpp detail/prepared_root.cpp detail/cgroups.cpp detail/cgroup_counters.cpp detail/cgroup_mounts.cpp
  detail/limits.cpp detail/privileges.cpp detail/landlock.cpp detail/channel.cpp detail/frame.cpp detail/fault.cpp)
target_include_directories(fixpoint_sandbox_broker PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(fixpoint_sandbox_broker PRIVATE -O2 -fno-pie -ffunction-sections -Wall -Wextra -Wshadow -fno-exceptions)
if(DEFINED ENV{CI} OR FIXPOINT_WERROR)
  target_compile_options(fixpoint_sandbox_broker PRIVATE -Werror)
endif()
# Code and constants alone in the first 2 MB, for own_text.cpp. With relro the data would begin at a multiple of 2 MB in the file, too: a
# megabyte of nothing in each service. The tables that it would protect are out of a program's reach: what the broker reads of others are
# frames of the service and words of its own inits.
target_link_options(fixpoint_sandbox_broker PRIVATE -static -no-pie -s -Wl,--gc-sections -Wl,-z,noseparate-code -Wl,-z,max-page-size=0x200000 -Wl,-z,norelro)
target_link_libraries(fixpoint_sandbox_broker PRIVATE tl::expected)
set_target_properties(fixpoint_sandbox_broker PROPERTIES
  POSITION_INDEPENDENT_CODE OFF RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

target_sources(fixpoint_sandbox PRIVATE
  syscall_policy.cpp toolchain.cpp sandbox.cpp
  detail/broker_process.cpp detail/embedded.cpp detail/zygote/warm_start.cpp detail/warm_workers.cpp detail/launcher.cpp detail/monitor.cpp detail/probing.cpp
  detail/compile_cache.cpp detail/seccomp_filter.cpp detail/channel.cpp detail/frame.cpp detail/cgroups.cpp detail/cgroup_counters.cpp
  detail/cgroup_mounts.cpp detail/namespaces.cpp detail/box_files.cpp detail/fault.cpp detail/quiet_write.cpp)

# Loaded into the prepared Python interpreter; also without sanitizers, and without libstdc++ of its own to find.
add_library(fixpoint_sandbox_zygote MODULE
  detail/zygote/zygote.cpp detail/zygote/usual_pages.cpp detail/target.cpp detail/limits.cpp detail/privileges.cpp detail/landlock.cpp
  detail/channel.cpp detail/frame.cpp detail/box_files.cpp detail/fault.cpp)
target_include_directories(fixpoint_sandbox_zygote PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_options(fixpoint_sandbox_zygote PRIVATE -O2 -Wall -Wextra -Wshadow -fno-exceptions)
target_link_options(fixpoint_sandbox_zygote PRIVATE -static-libstdc++ -static-libgcc -s -Wl,--gc-sections)
target_link_libraries(fixpoint_sandbox_zygote PRIVATE tl::expected)
set_target_properties(fixpoint_sandbox_zygote PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

target_link_libraries(fixpoint_sandbox PRIVATE OpenSSL::Crypto)

set(broker_file ${CMAKE_CURRENT_BINARY_DIR}/fixpoint_sandbox_broker)
set(zygote_library ${CMAKE_CURRENT_BINARY_DIR}/libfixpoint_sandbox_zygote.so)
set(zygote_program ${CMAKE_CURRENT_SOURCE_DIR}/detail/zygote/zygote.py)
set(node_worker ${CMAKE_CURRENT_SOURCE_DIR}/detail/zygote/worker.js)
set_source_files_properties(detail/embedded.cpp PROPERTIES
  COMPILE_DEFINITIONS "FIXPOINT_BROKER_FILE=\"${broker_file}\";FIXPOINT_ZYGOTE_LIBRARY=\"${zygote_library}\";FIXPOINT_ZYGOTE_PROGRAM=\"${zygote_program}\";FIXPOINT_NODE_WORKER=\"${node_worker}\""
  OBJECT_DEPENDS "${broker_file};${zygote_library};${zygote_program};${node_worker}")
add_dependencies(fixpoint_sandbox fixpoint_sandbox_broker fixpoint_sandbox_zygote)
