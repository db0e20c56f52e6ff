# Puts the drivers' texts into a source file of the build.
set(drivers ${CMAKE_CURRENT_LIST_DIR})
foreach(entry PYTHON_DRIVER:python_driver.py JAVASCRIPT_DRIVER:javascript_driver.js CPP_DRIVER:cpp_driver.hpp
              RUST_DRIVER:rust_driver.rs JAVA_DRIVER:java_driver.java PYTHON_TRACER:python_tracer.py)
  string(REPLACE ":" ";" parts ${entry})
  list(GET parts 0 name)
  list(GET parts 1 file)
  # Re-read when the file changes; semicolons and brackets stay as they are because the text is never a list.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${drivers}/${file})
  file(READ ${drivers}/${file} FIXPOINT_${name})
endforeach()
configure_file(${drivers}/drivers.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/drivers.cpp @ONLY)
