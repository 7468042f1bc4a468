#!/usr/bin/env bash
# Makes a wheel in dist/ with the `python3` on PATH.
#
#   scripts/ci/wheel.sh [cuda]     with `cuda`, the wheel has the CUDA library; no GPU is needed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/setup_env.sh

install_system_packages
make_environment
if [[ ${1:-} == cuda ]]; then
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-cuda.txt
  export USE_CUDA=1
fi
.venv/bin/python setup.py bdist_wheel
.venv/bin/python scripts/ci/hit_rate.py build/report.json
