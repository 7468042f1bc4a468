"""Built files into the tree, and the tree into the environment.

In:  the files that Bazel built.
Out: the package's shared objects, and an installed distribution that leads to this tree.

    verify.py     whether the built files would work, here and elsewhere
    outputs.py    built files to their places in the package, atomically and only when they differ
    editable.py   the editable install: a .pth file and a .dist-info folder
"""
