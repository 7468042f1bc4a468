#!/usr/bin/env bash
# Sets a machine up, builds the package and trains a model with it.
#
#   scripts/bootstrap.sh
#
# For Debian 12 or later, as root or with sudo; on other systems install the packages yourself. The steps:
#   1. apt installs missing system packages: a compiler, Python's headers, googletest; Bazel 4.2.3 and its rule sets,
#      where there is neither bazelisk nor bazel
#   2. creates .venv, with the versions that requirements.txt pins
#   3. python setup.py develop: builds the shared objects and makes the package importable in .venv
#   4. python -m torch_xla_lite.examples.digits: trains a small network on device "jax"
#
# A second run takes seconds. Outside this folder it writes only system packages, and caches under ~/.cache.
#
# Exit status: 0 if the example ran; otherwise that of the failed step, whose message says what to do.
set -euo pipefail
if [[ $# -gt 0 ]]; then
  sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
  [[ $1 == -h || $1 == --help ]] && exit 0
  exit 2
fi
CDPATH="" cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
exec scripts/python.sh -m scripts.environment --build
