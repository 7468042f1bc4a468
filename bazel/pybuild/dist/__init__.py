"""Writes wheels and source distributions that are reproducible to the byte.

In:  the tree, pyproject.toml and files that are built already.
Out: wheels and source distributions.

    archive.py       zip and tar files without times and owners
    sources.py       which files belong to the package, and which to building it
    metadata.py      pyproject.toml as METADATA and entry_points.txt
    licenses.py      the licences of what is compiled in
    strip.py         libraries without symbols
    wheel_format.py  names, tags, .dist-info folder and archive of a wheel
    sdist.py         the source distribution
"""
