"""The Python part of the build: everything that setup.py does around its one call of Bazel.

Folders and files, from the lowest to the highest. A file imports only what stands above it here
(test/lint/imports_test.py):

    errors.py, notices.py      failures with a remedy; messages for the end of a command
    files.py                   writes files atomically, and removes files inside a folder
    interrupts.py, protobuf.py signals that end a command; decodes what Bazel writes
    variables.py, options.py   the table of the build's environment variables; their values
    run_time.py                those that the package reads; a link to its startup/variables.py
    streams.py                 opens closed standard streams; a link to its startup/streams.py
    lock.py                    one command at a time in one tree
    machine/                   what is installed here: Bazel, Python packages, compilers, CUDA
    why/                       why Bazel ran its actions, from its logs
    cache/                     where caches are, and whether the remote one answers
    call/                      calls Bazel: the command line, the process, a retry, what it did
    bazelrc.py                 the lines of .bazelrc.generated
    report.py                  the last line, and build/report.json
    configure.py               writes .bazelrc.generated if this machine has changed
    dist/                      file formats: metadata, wheels, source distributions
    install/                   copies built files into the package; the editable install
    build.py                   one build, from the options to the files in the package
    develop.py, wheel.py       a build with an editable install; a build with a wheel
    commands/                  the command line of setup.py
    flow.py                    setup.py from start to end, as a list of steps
    backend.py                 the PEP 517/660 hooks

`python setup.py develop` passes through flow, options, develop, build, lock, configure,
call/command, call/run, call/events, install/verify, install/outputs, report and install/editable,
in this order.

A `develop` that has nothing to do takes little longer than Bazel itself. So it imports little:
functions import the modules that only a real change needs (hashing, TOML, setuptools).
"""

import sys

# Checked here, because every build imports this file first, and pip calls the backend before it
# reads requires-python. Bazel's rule and scripts/python.sh run this file, too. The syntax is valid
# in older interpreters.
OLDEST = (3, 11)
if sys.version_info < OLDEST:
    sys.exit(
        "error: Python %d.%d is too old (%s): torch_xla_lite needs %d.%d or newer.\n"
        "Use a newer one, such as python%d.%d."
        % (*sys.version_info[:2], sys.executable, *OLDEST, *OLDEST)
    )
