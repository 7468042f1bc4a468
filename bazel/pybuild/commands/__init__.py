"""The command line of setup.py, as setuptools reads it. A lone `develop` does without.

In:  the words behind setup.py.
Out: calls of build, develop, wheel and of the files here.

    distribution.py     what setuptools knows of the package, and the options of all commands
    clean.py            removes what was built
    pip_install.py      runs pip for the `install` command
    show_options.py     prints the table of environment variables
    command_classes.py  one class a command, each a few lines
    command_line.py     parses the words, prints the plan of a dry run, runs the commands
"""
