#!/usr/bin/env bash
# Builds a commit that the cache knows, in a new clone, and prints the hit rate.
#
#   scripts/ci/warm_clone.sh [COMMIT [MINIMUM]]     fails if less than MINIMUM percent came from the cache
#
# COMMIT is HEAD by default, MINIMUM 100. The cache is the remote one, without the disk cache, and the disk cache if
# there is no remote one. Uses the environment that build.sh has made.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD

temporary=$(mktemp -d)
trap 'chmod -R u+w "$temporary"; rm -rf "$temporary"' EXIT
git clone --quiet . "$temporary/clone"
git -C "$temporary/clone" checkout --quiet "${1:-$(git rev-parse HEAD)}"
cd "$temporary/clone"
export TORCH_XLA_LITE_BAZEL_STARTUP_OPTIONS="--output_user_root=$temporary/bazel --max_idle_secs=5"
# build_ext, because `develop` would point the environment to this clone.
[[ -z ${TORCH_XLA_LITE_REMOTE_CACHE:-} ]] || export TORCH_XLA_LITE_BAZEL_BUILD_OPTIONS=--disk_cache=
"$root/.venv/bin/python" setup.py build_ext
"$root/.venv/bin/python" "$root/scripts/ci/hit_rate.py" build/report.json --minimum "${2:-100}"
