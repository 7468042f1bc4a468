#!/usr/bin/env bash
# Tests a wheel that is built with torch for CUDA, on a machine that needs no GPU: which kernels it has, and whether it
# is imported and trains on the CPU.
#
#   scripts/ci/cuda_torch.sh ENVIRONMENT
#
# ENVIRONMENT is a folder with a Python environment whose torch is for CUDA. If it is missing, it is made, with the
# packages of requirements.txt; the configuration of pip decides which build of torch these install (with PyPI, that for
# CUDA: 6 GB). The packages of requirements-cuda.txt are installed into it; the wheel is not.
#
# The next `setup.py develop` takes your environment again.
#
# Exit status: 0 if all is right.
set -euo pipefail
if [[ $# -ne 1 || $1 == -h || $1 == --help ]]; then
  sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
  [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
  exit 2
fi
environment=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source scripts/setup_env.sh

ENVIRONMENT=$environment
install_system_packages
[[ -x $ENVIRONMENT/bin/python && ! -e $ENVIRONMENT/.requirements.txt.new ]] || make_environment
"$ENVIRONMENT/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-cuda.txt

wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
# Whether there are kernels is decided by the torch that is installed.
unset USE_CUDA
export TORCH_CUDA_ARCH_LIST="8.0;9.0+PTX"
"$ENVIRONMENT/bin/python" setup.py bdist_wheel --dist-dir "$wheels"
"$ENVIRONMENT/bin/python" scripts/ci/check_cuda_wheel.py "$wheels"/*.whl sm_80 sm_90 compute_90
