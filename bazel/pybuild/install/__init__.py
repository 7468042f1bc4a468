"""Installs built files into the package, and the package into the environment.

In:  the files that Bazel built.
Out: the package's shared objects, and an installed distribution whose code is in this tree.

    verify.py     checks whether the built files would work, here and on other machines
    outputs.py    copies built files into the package, all or none, and only changed ones
    editable.py   makes the editable install: a .pth file and a .dist-info folder
"""
