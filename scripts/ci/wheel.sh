#!/usr/bin/env bash
# Makes a wheel in dist/ with the `python3` on PATH.
#
#   scripts/ci/wheel.sh [cpu]         without CUDA
#   scripts/ci/wheel.sh cuda          with the CUDA library; no GPU is needed
#   scripts/ci/wheel.sh KIND release  built without any cache, and compared with one from the caches
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/setup_env.sh

install_system_packages
make_environment
if [[ ${1:-} == cuda ]]; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-cuda.txt
  export USE_CUDA=1
fi
if [[ ${2:-} == release ]]; then
  .venv/bin/python scripts/ci/release_wheel.py
else
  .venv/bin/python setup.py bdist_wheel
fi
.venv/bin/python scripts/ci/hit_rate.py build/report.json
