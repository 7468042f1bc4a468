"""Calls Bazel: the only code that does.

In:  the options, and the Bazel that machine/ found.
Out: the exit code, and what Bazel did.

    process.py  starts a program and waits for it, through Ctrl-C
    client.py   Bazel, its startup options, and questions to it
    command.py  the command line of a build
    failure.py  the error for a call that failed
    events.py   what a build did, from the files that Bazel writes
    run.py      runs a command; again where a cache has ended it
"""
