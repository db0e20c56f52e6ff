# Puts the drivers' texts into a source file of the build.
set(drivers ${CMAKE_CURRENT_LIST_DIR})
foreach(entry JAVASCRIPT_DRIVER:javascript_driver.js CPP_DRIVER:cpp_driver.hpp
              RUST_DRIVER:rust_driver.rs JAVA_DRIVER:java_driver.java PYTHON_TRACER:python_tracer.py)
  string(REPLACE ":" ";" parts ${entry})
  list(GET parts 0 name)
  list(GET parts 1 file)
  # Re-read when the file changes; semicolons and brackets stay as they are because the text is never a list.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${drivers}/${file})
  file(READ ${drivers}/${file} FIXPOINT_${name})
endforeach()
# One Python module in parts, in this order.
set(FIXPOINT_PYTHON_DRIVER "")
foreach(part module values channel candidate honest asserts separation remote given_tests serve)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${drivers}/python/${part}.py)
  file(READ ${drivers}/python/${part}.py text)
  string(APPEND FIXPOINT_PYTHON_DRIVER "${text}\n\n")
endforeach()
configure_file(${drivers}/drivers.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/drivers.cpp @ONLY)
