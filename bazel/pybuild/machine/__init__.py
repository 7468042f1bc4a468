"""Inspects what is installed on this machine.

In:  the options, the environment variables and the file system.
Out: which Bazel to call (find_bazel), what its settings depend on (inputs), or an error that says
     what is missing (preflight).

    find_bazel.py     which Bazel to call
    packages.py       which torch, jax and pybind11 are installed, and which are wanted
    toolchain.py      which compiler, libc and linker: what a cache key has to distinguish
    cuda_toolkits.py  where CUDA toolkits are
    cuda_archs.py     for which GPUs CUDA code is compiled
    cuda.py           whether there is a CUDA library
    preflight.py      what must be there before a build is worth starting
    inputs.py         all that Bazel's settings depend on
"""
