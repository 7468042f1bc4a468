# What bootstrap.sh and test.sh need before they can start: system packages, .venv, and Bazel's settings.
# To be sourced by bash with the root of the tree as the current folder; nothing here is run on its own.
#
#   install_system_packages   by apt, what is missing, and says so; nothing when nothing is missing. With the argument
#                             `tests` also what only tests use
#   make_environment          .venv, with the versions of requirements.txt
#   install_cuda_toolkit      into .venv, with the versions of requirements-cuda.txt; for tests only
#   configure_bazel           .bazelrc.generated, for the interpreter of .venv
#   BAZEL                     the Bazel to call, set by install_system_packages
#
# Each does nothing when there is nothing to do.

say() { printf '%s\n' "$*"; }
# give_up PROBLEM REMEDY
give_up() { printf 'error: %s\n%s\n' "$@" >&2; exit 1; }

# Nothing here asks anything, and programs that find their standard input closed (as cron leaves it) fail oddly.
exec </dev/null

# Bazel, pip and the caches need a home folder; cron and containers may not have one.
if [[ -z ${HOME:-} ]]; then
  HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
  export HOME
fi

find_bazel() {
  if [[ -n ${TORCH_XLA_LITE_BAZEL:-} ]]; then
    BAZEL=$(command -v "$TORCH_XLA_LITE_BAZEL") ||
      give_up "TORCH_XLA_LITE_BAZEL=$TORCH_XLA_LITE_BAZEL is not a program that can be run." \
        "Correct it, or unset it:  unset TORCH_XLA_LITE_BAZEL"
  else
    BAZEL=$(command -v bazelisk || command -v bazel || true)
  fi
}

# The interpreter that .venv is made with: python3 if it is new enough, else a newer one under its own name.
find_python() {
  local name
  for name in python3 python3.11 python3.12 python3.13; do
    if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      BASE_PYTHON=$name
      return 0
    fi
  done
  return 1
}

# Prints the packages that are missing, found by what they provide: it does not matter who installed it.
missing_packages() {
  if ! find_python; then
    echo python3 python3-dev python3-venv
  else
    "$BASE_PYTHON" -c 'import ensurepip' 2>/dev/null || echo "$BASE_PYTHON-venv"
    "$BASE_PYTHON" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' ||
      echo "$BASE_PYTHON-dev"
  fi
  command -v "${CC:-gcc}" >/dev/null && command -v g++ >/dev/null || echo g++
  [[ -e /usr/include/gtest/gtest.h || -e /usr/local/include/gtest/gtest.h ]] || echo libgtest-dev
  command -v git >/dev/null || echo git
  [[ -n $BAZEL ]] || echo bazel-bootstrap
  # Debian's Bazel 4 does not carry these rule sets; Bazels of other origin fetch them.
  if [[ -z $BAZEL || $(readlink -f "$BAZEL") == /usr/bin/bazel || ${USE_BAZEL_VERSION:-} == /usr/bin/bazel* ]]; then
    [[ -d /usr/share/bazel/rules/java ]] || echo bazel-rules-java
    [[ -d /usr/share/bazel/rules/proto ]] || echo bazel-rules-proto
  fi
}

# What tests use beyond that: part of them is built for 64-bit ARM, and run in an emulator.
missing_packages_of_tests() {
  command -v aarch64-linux-gnu-g++ >/dev/null || echo g++-aarch64-linux-gnu
  command -v qemu-aarch64 >/dev/null || command -v qemu-aarch64-static >/dev/null || echo qemu-user
}

# install_system_packages [tests]
install_system_packages() {
  local missing as_root=()
  find_bazel
  missing=$( (missing_packages; [[ ${1:-} != tests ]] || missing_packages_of_tests) | xargs)
  if [[ -n $missing ]]; then
    command -v apt-get >/dev/null ||
      give_up "These are missing, under the names that Debian has for them: $missing" \
        "Install them by this system's own means, and run this again."
    if [[ $(id -u) != 0 ]]; then
      command -v sudo >/dev/null ||
        give_up "To install $missing takes root, and there is no sudo." "As root:  apt-get install $missing"
      as_root=(sudo)
    fi
    say "Installing system packages by apt: $missing"
    # apt's hundreds of lines tell nothing that this one did not; what goes wrong it writes to stderr.
    # shellcheck disable=SC2086  # A list of words.
    "${as_root[@]}" apt-get update -qq >/dev/null &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
      give_up "apt could not install $missing." "See its message above; then run this again."
  fi
  find_python ||
    give_up "No Python 3.11 or newer was found." \
      "Install one, such as:  apt-get install python3.11 python3.11-dev python3.11-venv"
  find_bazel
  [[ -n $BAZEL ]] ||
    give_up "Bazel was not found." \
      "Install one:  apt-get install bazel-bootstrap bazel-rules-java bazel-rules-proto"
}

make_environment() {
  # The copy says what is installed. It is written last, so an installation that was cut short is taken up again.
  local installed=.venv/.requirements.txt
  cmp -s requirements.txt "$installed" && .venv/bin/python -c '' 2>/dev/null && return
  if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    say "Making .venv with $("$BASE_PYTHON" --version)"
    "$BASE_PYTHON" -m venv --clear .venv
  fi
  say "Installing the Python packages of requirements.txt into .venv"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.txt ||
    give_up "pip could not install the packages of requirements.txt." "See its message above; then run this again."
  cp requirements.txt "$installed"
}

# A compiler for CUDA, for what tests compile: a toolkit of the machine may be there or not, and be any.
install_cuda_toolkit() {
  local installed=.venv/.requirements-cuda.txt
  cmp -s requirements-cuda.txt "$installed" && return
  say "Installing the CUDA toolkit of requirements-cuda.txt into .venv"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-cuda.txt ||
    give_up "pip could not install the packages of requirements-cuda.txt." \
      "See its message above; then run this again."
  cp requirements-cuda.txt "$installed"
}

configure_bazel() {
  .venv/bin/python -m bazel.pybuild.machine.configure
}
