#!/usr/bin/env bash
# Builds and tests everything with one Bazel, such as one of another version than that of this system.
#
#   TORCH_XLA_LITE_BAZEL=~/bin/bazel-7.7.1 scripts/ci/test_bazel.sh        a build, and tests of what Bazel runs
#   TORCH_XLA_LITE_BAZEL=~/bin/bazel-7.7.1 scripts/ci/test_bazel.sh --all  a build, and all tests, before a release
#
# Other arguments go to `bazel test`. The Python is that of .venv, else python3; its packages must be installed
# (scripts/bootstrap.sh). Without the variable, the Bazel of setup.py is used.
#
# Exit status: 0 if everything was built and all tests passed; otherwise that of the command that failed.
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
  exit 0
fi
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python=.venv/bin/python
[[ -x $python ]] || python=python3
bazel=$("$python" -m bazel.pybuild.machine.find_bazel | head -n 1)

# The rules, the build and the caches; the other tests run the same code with every Bazel.
targets=(//test/bazel/... //test/build/... //test/cache/... //test/csrc/... //test/lint/... //test/third_party/...)
if [[ ${1:-} == --all ]]; then
  targets=(//test/...)
  shift
fi
"$bazel" --version
"$python" setup.py develop
"$bazel" query 'deps(//...)' >/dev/null
"$bazel" build --show_progress_rate_limit=10 //...
# The tests build small trees with it, too.
"$bazel" test "--test_env=TORCH_XLA_LITE_BAZEL=$bazel" --show_progress_rate_limit=10 --keep_going "$@" "${targets[@]}"
