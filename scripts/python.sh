#!/usr/bin/env bash
# Runs a module of this tree, with the first Python that is not too old for it. Installs one where there is none.
#
#   scripts/python.sh -m scripts.environment
set -euo pipefail
CDPATH="" cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

# Nothing here reads the standard input, and programs can fail if it is closed, as cron leaves it.
exec </dev/null

# Bazel, pip and the caches need a home folder; cron and containers may not have one.
export HOME=${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}

run() {
  local name
  for name in python3 $(compgen -c python3. | grep -x 'python3\.[0-9]*' | sort -Vu); do
    if "$name" -B -c 'import bazel.pybuild' >/dev/null 2>&1; then
      exec "$name" -B "$@"
    fi
  done
}

run "$@"
as_root=()
[[ $(id -u) == 0 ]] || as_root=(sudo)
echo "Installing python3 with apt"
"${as_root[@]}" apt-get update -qq >/dev/null && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends python3 python3-dev python3-venv >/dev/null || true
run "$@"
printf 'error: No Python was found that is new enough. %s\n%s\n' "$(python3 -B -c 'import bazel.pybuild' 2>&1)" \
  "Install one with its headers and venv, such as:  apt-get install python3.11 python3.11-dev python3.11-venv" >&2
exit 1
