#!/bin/sh
# Runs only under `bazel coverage`.
echo "Coverage tools are not part of this Bazel. Use a Bazel from bazelisk for 'bazel coverage'." >&2
exit 1
