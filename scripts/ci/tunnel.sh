#!/usr/bin/env bash
# Encrypts the way to the remote cache (scripts/remote/cache_tunnel.py) in the following steps of a job of GitHub.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

url=$(mktemp)
nohup python3 scripts/remote/cache_tunnel.py "$TORCH_XLA_LITE_REMOTE_CACHE" --port 0 </dev/null >"$url" 2>&1 &
for ((i = 0; i < 100; i++)); do
  if grep -q '^http' "$url"; then
    echo "TORCH_XLA_LITE_REMOTE_CACHE=$(grep -m 1 '^http' "$url")" >>"$GITHUB_ENV"
    exit
  fi
  sleep 0.1
done
cat "$url" >&2
exit 1
