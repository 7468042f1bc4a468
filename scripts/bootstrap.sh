#!/usr/bin/env bash
# Sets a machine up, builds the package and trains a model with it.
#
#   scripts/bootstrap.sh
#
# For Debian 12 or later, as root or with sudo; on other systems install the packages yourself. The steps:
#   1. apt installs missing system packages: Bazel and its rule sets, a compiler, Python's headers, googletest
#   2. creates .venv, with the versions that requirements.txt pins
#   3. python setup.py develop: builds the shared objects and makes the package importable in .venv
#   4. python -m torch_xla_lite.examples.digits: trains a small network on device "jax"
#
# Uses bazelisk from PATH if it can provide the Bazel that .bazeliskrc pins, else bazel from PATH, and says which;
# TORCH_XLA_LITE_BAZEL names another. A second run takes seconds. Outside this folder it writes only system packages, and
# caches under ~/.cache.
#
# Exit status: 0 if the example ran; otherwise that of the failed step, whose message says what to do.
set -euo pipefail
if [[ $# -gt 0 ]]; then
  sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
  [[ $1 == -h || $1 == --help ]] && exit 0
  exit 2
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup_env.sh

install_system_packages
make_environment
.venv/bin/python setup.py develop
.venv/bin/python -m torch_xla_lite.examples.digits
say "Done. Next:  source .venv/bin/activate, or run the tests:  scripts/test.sh"
