"""The caches of a build: where they are, whether they answer, and their repair.

xdg.py           the folder of this project's caches; a link to torch_xla_lite/startup/caches.py
folders.py       that, and the folder of the disk cache
disk_cache.py    finds and replaces damaged entries
remote_cache.py  Bazel's options for the remote cache; asks its server
"""
