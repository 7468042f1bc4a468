"""The caches of a build: where they are, and whether the remote one answers.

xdg.py           the folder of this project's caches; a link to torch_xla_lite/startup/caches.py
folders.py       that, and the folder of the disk cache
remote_cache.py  Bazel's options for the remote cache; asks its server once
"""
