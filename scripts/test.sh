#!/usr/bin/env bash
# Runs the tests: installs what they need, then calls `bazel test`.
#
#   scripts/test.sh                           the daily tests, which find nearly all faults
#   scripts/test.sh --all                     the nightly ones, too (--config=nightly): matrices, long runs
#   scripts/test.sh //test/csrc/...           some
#   scripts/test.sh --test_filter=views       arguments go to `bazel test`; the default target is //test/...
#
# `bazel test //test/...` runs the same tests with the same flags (.bazelrc). In addition, this script
#   - installs libraries; tests that need one which is missing are skipped
#   - goes on after a failed build (--keep_going)
#   - uses --config=ci where CI is set: sandboxes
#   - uses --config=remote-cache where TORCH_XLA_LITE_REMOTE_CACHE is set, while the server answers
#
# The last line is stable, for programs: "N passed, N failed" counts test cases; a target without results (because it
# did not build, or was killed) counts as one failed case. Bazel does not repeat tests whose inputs have not changed;
# their earlier results count. The line before tells the CPU seconds of the machine.
#
# Exit status: 0 if all tests passed; otherwise Bazel's, such as 1 for a failed build and 3 for failed tests.
set -euo pipefail
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  sed -n '2,/^set -e/{/^set -e/d;s/^# \{0,1\}//;p}' "$0"
  exit 0
fi
CDPATH="" cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
exec scripts/python.sh -m scripts.run_tests "$@"
