"""Calls Bazel and reports what it did.

In:  the options, and the Bazel that machine/ found.
Out: the files that were built, and a report of what was done for them.

    invoke.py         the command line and the process
    execution_log.py  the processes that Bazel started or found in a cache
    profile.py        when each action ran, from Bazel's profile
    events.py         what Bazel did, from all these files
    explain.py        why each action ran
    report.py         the last line, and build/report.json
    last_build.py     reads build/report.json
"""
