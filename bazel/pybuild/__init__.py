"""The setuptools half of the build, one concern a file.

What happens on `python setup.py develop`, in the order in which the files call each other:

    flow.py         setup.py from its first word to its last, as a list of steps
    options.py      the environment variables that steer the build, as one typed table
    develop.py      the command: build, editable install, last line
    build.py        one build, from the options to the files in the package
    lock.py         no two of them at once in one tree
    find_bazel.py   which Bazel to call
    configure.py    what Bazel must be told of this machine: .bazelrc.generated
      packages.py     which torch and jax are installed, and which are wanted
      preflight.py    what must be there before a build is worth starting
      cuda.py         whether there is a CUDA library
        cuda_toolkits.py  with what it is compiled
        cuda_archs.py     for which GPUs
      toolchain.py    which compiler, libc and linker: what a cache key has to tell apart
    invoke.py       the one call of Bazel
    events.py       what Bazel did, from its event file and execution log
    verify.py       whether the built files would work, and everywhere
      elf.py          what a shared object says of itself
    outputs.py      built files to their places in the package, atomically and only when they differ
    editable.py     the editable install: a .pth file and a .dist-info folder
    report.py       the last line, and build/report.json

A lone `develop` needs no setuptools. For every other command line flow.py takes further steps:

    command_line.py    reads the words and their options, and runs the commands
      commands.py        build_ext, develop, clean ...: thin
      clean.py           what one of them does
      pip_install.py     whom another one asks
      variables_text.py  what a third one prints

What makes the archives that others install, all of it reproducible to the byte:

    wheel.py        the whole package, or one of its halves: built files, sources, .dist-info
      debug_files.py  libraries without symbols, and the files that debuggers read instead
      licenses.py     those of what is compiled in
    sdist.py        the source distribution
      sources.py      which files belong to the package, and which to building it
      metadata.py     what installers are told, from pyproject.toml
      archive.py      zip and tar files without times and owners
    isolation.py    where torch is when a front end hides it
    uninstall.py    removes an installed wheel that would hide an editable install

`backend.py` holds the PEP 517/660 hooks, and calls the same functions. What the user should still
know when all is done waits in `notices.py`.

A `develop` that finds nothing to do takes little longer than Bazel itself. So what it imports is
kept small: modules that only a real change needs (hashing, TOML, setuptools) are imported where
they are used.
"""
