#!/usr/bin/env bash
# Sets the machine up and builds the package; prints the share of results that came from a cache.
#
#   scripts/ci/build.sh [MINIMUM]     fails if less than MINIMUM percent came from a cache
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/setup_env.sh

install_system_packages
make_environment
.venv/bin/python setup.py develop
.venv/bin/python scripts/ci/hit_rate.py build/report.json --minimum "${1:-0}"
