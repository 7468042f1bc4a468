#!/usr/bin/env bash
# Sets everything up from nothing, builds the package and trains a model with it.
#
#   scripts/bootstrap.sh
#
# For Debian 12 or later, as root or with sudo; elsewhere what apt would install must be there. In this order:
#   1. system packages that are missing, by apt: Bazel and its rule sets, a compiler, Python's headers, googletest
#   2. .venv, with the versions that requirements.txt pins
#   3. python setup.py develop: builds the shared objects and makes the package importable in .venv
#   4. python -m torch_xla_lite.examples.digits: trains a small network on device "jax"
#
# A bazelisk or bazel on PATH is used as it is; TORCH_XLA_LITE_BAZEL names another. Can be run again at any time; it
# then takes seconds. Leaves nothing outside this folder but system packages and caches under ~/.cache.
#
# Exit status: 0 when the example ran; otherwise that of the step that failed, whose message says what to do.
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
