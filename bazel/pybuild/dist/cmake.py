"""The CMake package configuration of a wheel that has the libraries and their headers.

    files("0.1.0+cu130")     # path in the wheel -> content

A project that uses it:

    list(APPEND CMAKE_PREFIX_PATH "<site-packages>/torch_xla_lite")
    find_package(torch_xla_lite 0.1 REQUIRED)
    target_link_libraries(mine PRIVATE torch_xla_lite::torch_xla_lite)
"""

import re

_FOLDER = "torch_xla_lite/share/cmake/torch_xla_lite"

_CONFIG = """\
# Defines torch_xla_lite::torch_xla_lite: libtorch_xla_lite.so, its headers, and what they need of
# torch, which has to be installed beside this package.
get_filename_component(_package "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
get_filename_component(_torch "${_package}/../torch" ABSOLUTE)
if(NOT EXISTS "${_torch}/lib/libtorch_cpu.so")
  set(${CMAKE_FIND_PACKAGE_NAME}_FOUND FALSE)
  set(${CMAKE_FIND_PACKAGE_NAME}_NOT_FOUND_MESSAGE
      "there is no torch in ${_torch}; install it where torch_xla_lite is installed")
  return()
endif()
if(NOT TARGET torch_xla_lite::torch_xla_lite)
  add_library(torch_xla_lite::torch_xla_lite SHARED IMPORTED)
  set_target_properties(torch_xla_lite::torch_xla_lite PROPERTIES
    IMPORTED_LOCATION "${_package}/lib/libtorch_xla_lite.so"
    INTERFACE_COMPILE_FEATURES cxx_std_20
    INTERFACE_INCLUDE_DIRECTORIES "${_package}/include;${_torch}/include"
    INTERFACE_LINK_LIBRARIES "${_torch}/lib/libtorch_cpu.so;${_torch}/lib/libc10.so")
endif()
"""

# Before 1.0, another minor version may have another interface.
_VERSION = """\
set(PACKAGE_VERSION "{version}")
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_EXACT TRUE)
endif()
if(PACKAGE_FIND_VERSION VERSION_GREATER_EQUAL "{minor}" AND
   PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
endif()
"""


def files(version: str) -> dict[str, bytes]:
    """The configuration for a PEP 440 version; CMake compares its numbers alone."""
    numbers = re.match(r"[\d.]*\d", version)[0]
    minor = ".".join(numbers.split(".")[:2])
    config = f"{_FOLDER}/torch_xla_lite-config"
    return {
        f"{config}.cmake": _CONFIG.encode(),
        f"{config}-version.cmake": _VERSION.format(version=numbers, minor=minor).encode(),
    }
