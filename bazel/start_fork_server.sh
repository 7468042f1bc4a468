#!/bin/sh
# Starts fork_server.py for the interpreter that this tree is configured for. Bazel runs it before the tests, as its
# workspace status command; it prints nothing, so it changes no output.
python=$(sed -n "s/^common.*--repo_env=TORCH_XLA_LITE_PYTHON=//p" .bazelrc.generated 2>/dev/null | tr -d "'")
[ -x "$python" ] && "$python" -ISP bazel/fork_client.py --start 2>/dev/null
exit 0
