#!/usr/bin/env bash
# Runs the tests. Sets the machine up first, like bootstrap.sh.
#
#   scripts/test.sh                           the daily tests, which find nearly all faults
#   scripts/test.sh --all                     the nightly ones, too: matrices, an emulator, a browser
#   scripts/test.sh --python 3.12 --torch 2.14    with other versions, in an environment below ~/.cache/torch_xla_lite
#   scripts/test.sh //test/csrc/...           some
#   scripts/test.sh --test_filter=views       arguments go to `bazel test`; the default target is //test/...
#
# At the end it prints the ten targets that ran longest, and the CPU seconds of the machine meanwhile.
#
# The last line is stable, for programs: "N passed, N failed" counts test cases; a target without results (because it
# did not build, or was killed) counts as one failed case. Bazel does not repeat tests whose inputs have not changed;
# their earlier results count.
#
# With TORCH_XLA_LITE_REMOTE_CACHE set, results are also read from the remote cache. The line before the last tells how
# many came from a cache. A server that does not answer is not used.
#
# Tests in Python are forks of one process (bazel/fork_server.py). XLA's programs come from a cache of jax below
# ~/.cache/torch_xla_lite (or XDG_CACHE_HOME) if a test has compiled the same before.
#
# With CI set, actions and tests run in sandboxes if the machine supports them.
#
# Exit status: 0 if all tests passed; otherwise Bazel's, such as 1 for a failed build and 3 for failed tests.
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
  exit 0
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source scripts/setup_env.sh

options=() all="" python="" torch=""
while [[ ${1:-} == --all || ${1:-} == --python || ${1:-} == --torch ]]; do
  case $1 in
    --all) all=yes; shift ;;
    --python) python=${2:?--python needs a version}; shift 2 ;;
    --torch) torch=${2:?--torch needs a version}; shift 2 ;;
  esac
done
if [[ -n $python$torch ]]; then
  other_versions "$python" "$torch"
fi
if [[ -n $all ]]; then
  options+=(--test_env=XLA_FLAGS=)  # Programs are optimised; by day they are not (bazel/pytest_plugin.py).
  install_system_packages tests nightly_tests
else
  options+=(--test_tag_filters=-nightly --build_tag_filters=-nightly --build_tests_only)
  install_system_packages tests
fi
make_environment
install_test_packages ${all:+nightly}
if [[ -n $all ]]; then
  install_buildgrid
  install_gpu_compiler
fi
# Two architectures, one of them with PTX: all six would take longer and test nothing more.
export TORCH_CUDA_ARCH_LIST=${TORCH_CUDA_ARCH_LIST:-8.0;9.0+PTX}
configure_bazel

# Not exported: Bazel writes the variables of its client to its event file. Only run_bazel gets them.
tokens=(TORCH_XLA_LITE_REMOTE_CACHE_READ_TOKEN TORCH_XLA_LITE_REMOTE_CACHE_WRITE_TOKEN)
export -n "${tokens[@]}"
run_bazel() (
  export "${tokens[@]}"
  exec "$ENVIRONMENT/bin/python" -m bazel.pybuild.commands.run_bazel "$@"
)
[[ -n ${TORCH_XLA_LITE_REMOTE_CACHE:-} ]] && options+=(--config=remote-cache)
if [[ -n ${CI:-} && ${CI,,} != false && $CI != 0 ]]; then
  sandbox=$("$BAZEL" info install_base 2>/dev/null)/linux-sandbox
  if "$sandbox" -N -- /bin/true 2>/dev/null; then
    options+=(--config=ci)
    # Sandboxes consist of links; in memory they take half the time. Tests write their files there too.
    shm_free=$(df --output=avail --block-size=1M /dev/shm 2>/dev/null | tail -n 1)
    if [[ -w /dev/shm && ${shm_free:-0} -ge 2048 ]]; then
      options+=(--sandbox_base=/dev/shm)
    fi
  else
    say "Sandboxes do not work on this machine; the tests run without them."
  fi
fi
targets=(//test/...)
for argument in "$@"; do
  [[ $argument == //* ]] && targets=()
done

# Programs depend on the processor; a change of a lowering is another program.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/torch_xla_lite/test_programs
cache+=/$(grep -E '^(model name|flags|Features)' /proc/cpuinfo | sort -u | sha256sum | head -c 12)-$(nproc)
mkdir -p "$cache"
options+=("--sandbox_writable_path=$cache")
# Its input ends with this script. It has as few variables as a test of Bazel: hypothesis, for one, reads CI.
coproc FORK_SERVER {
  exec env -i "HOME=$HOME" "PATH=$PATH" "JAX_COMPILATION_CACHE_DIR=$cache" JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 \
    JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1 "$ENVIRONMENT/bin/python" -P bazel/fork_server.py "$ENVIRONMENT/fork_server.socket"
}

cpu_ticks() { awk '/^cpu / {print $2 + $3 + $4 + $7 + $8}' /proc/stat; }
ticks=$(cpu_ticks)
events=$(mktemp)
trap 'rm -f "$events"' EXIT
code=0
# With a cache by gRPC, the paths of logs would be those of the server.
events_options=("--build_event_json_file=$events" --nobuild_event_json_file_path_conversion)
run_bazel test "${options[@]}" --keep_going "${events_options[@]}" "$@" "${targets[@]}" || code=$?
say "CPU seconds of this machine: $((($(cpu_ticks) - ticks) / $(getconf CLK_TCK)))"
"$ENVIRONMENT/bin/python" scripts/ci/hit_rate.py "$events" || code=$((code == 0 ? 1 : code))
"$ENVIRONMENT/bin/python" -m bazel.test_summary "$events" || code=$((code == 0 ? 1 : code))
exit "$code"
