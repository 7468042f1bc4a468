"""The command line of setup.py, parsed by setuptools. `develop` without other words skips it.

In:  the arguments of setup.py.
Out: calls of build, develop, wheel and of the files here.

    distribution.py     the package as setuptools knows it, and the options of all commands
    clean.py            removes what was built
    doctor.py           checks what builds need; the package's doctor runs it
    pip_install.py      runs pip for the `install` command
    finding.py          a result of doctor; a link to torch_xla_lite/commands/finding.py
    run_bazel.py        calls Bazel as setup.py does, for scripts/test.sh
    show_options.py     prints the table of environment variables
    command_classes.py  one short class for each command
    command_line.py     parses the arguments and runs the commands
"""
