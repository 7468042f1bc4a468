#!/usr/bin/env bash
# Runs what tells most about an accelerator, in less than eight minutes, and writes docs/gpu.md from it (see --help).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PATH=.venv/bin:$PATH exec python -m scripts.accelerator "$@"
