#!/usr/bin/env bash
# Runs all tests, from nothing: what they need is set up first, as by bootstrap.sh.
#
#   scripts/test.sh                           all of them
#   scripts/test.sh //test/csrc/...           some
#   scripts/test.sh --test_filter=views       arguments go to `bazel test`; without a target it is //test/...
#
# The last line is stable for other programs: "N passed, N failed", the test cases that Bazel has results of; a
# target without results (it did not build, or was killed) counts as one that failed. Results of tests whose inputs
# have not changed are Bazel's earlier ones.
#
# With CI set, actions and tests run in sandboxes where the machine allows that.
#
# Exit status: 0 when all passed; otherwise Bazel's, such as 1 for a failed build and 3 for failed tests.
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
  exit 0
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup_env.sh

install_system_packages tests
make_environment
install_cuda_toolkit
# Tests compile for two kinds of GPU, machine code and PTX; six kinds would prove nothing more.
export TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST:-8.0;9.0+PTX}
configure_bazel

options=()
if [[ -n ${CI:-} && ${CI,,} != false && $CI != 0 ]]; then
  sandbox=$("$BAZEL" info install_base 2>/dev/null)/linux-sandbox
  if "$sandbox" -- /bin/true 2>/dev/null; then
    options+=(--config=ci)
    # Sandboxes are made of links to inputs; in memory these cost half. Tests put their files there too.
    shm_free=$(df --output=avail --block-size=1M /dev/shm 2>/dev/null | tail -n 1)
    if [[ -w /dev/shm && ${shm_free:-0} -ge 2048 ]]; then
      options+=(--sandbox_base=/dev/shm)
    fi
  else
    say "Sandboxes do not work on this machine; tests run without."
  fi
fi
targets=(//test/...)
for argument in "$@"; do
  [[ $argument == //* ]] && targets=()
done

events=$(mktemp)
trap 'rm -f "$events"' EXIT
code=0
"$BAZEL" test "${options[@]}" --keep_going --build_event_json_file="$events" "$@" "${targets[@]}" || code=$?
.venv/bin/python -m bazel.test_summary "$events" || code=$((code == 0 ? 1 : code))
exit "$code"
