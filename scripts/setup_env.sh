# Functions that prepare a machine, for bootstrap.sh and test.sh: system packages, .venv, and Bazel's configuration.
# bash sources this file, with the root of the tree as the current folder.
#
#   install_system_packages   installs missing packages with apt; with the arguments `tests` and `nightly_tests`, also
#                             those that only these need. Sets BAZEL to the Bazel to call
#   other_versions            makes the functions below use another environment, below the user's cache folder
#   make_environment          creates .venv, with the versions of requirements.txt
#   install_test_packages     installs into .venv what only tests need: the CUDA toolkit of requirements-cuda.txt, and the
#                             libraries of test/models/requirements.txt; with the argument `nightly`, of nightly.txt, too
#   install_gpu_compiler      the same, for nightly tests: XLA's compiler for GPUs, which needs none
#   configure_bazel           writes .bazelrc.generated, for the interpreter of .venv
#
# Each does nothing if there is nothing to do.

say() { printf '%s\n' "$*"; }
# give_up PROBLEM REMEDY
give_up() { printf 'error: %s\n%s\n' "$@" >&2; exit 1; }

ENVIRONMENT=.venv
PYTHON_VERSION="" TORCH_VERSION=""

# No command here reads its standard input, and programs can fail if it is closed, as cron leaves it.
exec </dev/null

# Bazel, pip and the caches need a home folder; cron and containers may not have one.
if [[ -z ${HOME:-} ]]; then
  HOME=$(getent passwd "$(id -u)" | cut -d: -f6)
  export HOME
fi

# Sets BAZEL, empty if there is none; without a Python, which find_bazel.py needs, it is not known either.
find_bazel() {
  local found
  BAZEL="" BAZEL_REASON="" BAZEL_IS_OTHER=""
  find_python || return 0
  found=$("$BASE_PYTHON" -B -m bazel.pybuild.machine.find_bazel) || exit 1
  { read -r BAZEL; read -r BAZEL_REASON; read -r BAZEL_IS_OTHER; } <<<"$found" || true
}

# Says which Bazel is used. setup.py prefers bazelisk, so it is told if that does not work.
choose_bazel() {
  say "Bazel: $BAZEL ($BAZEL_REASON)"
  if [[ -n $BAZEL_IS_OTHER ]]; then
    export TORCH_XLA_LITE_BAZEL=$BAZEL
    say "For later commands:  export TORCH_XLA_LITE_BAZEL=$BAZEL"
  fi
}

# Sets BASE_PYTHON, the interpreter for .venv: the first one that bazel/pybuild does not find too old.
find_python() {
  local name
  for name in ${PYTHON_VERSION:+"python$PYTHON_VERSION"} python3 $(compgen -c python3. | grep -x 'python3\.[0-9]*' | sort -Vu); do
    if "$name" -B -c 'import bazel.pybuild' 2>/dev/null; then
      BASE_PYTHON=$name
      return 0
    fi
  done
  return 1
}

# Prints the missing packages. Looks for the files and programs that they install, which may come from elsewhere.
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
  # Debian's Bazel 4 does not include these rule sets; other builds of Bazel download them.
  if [[ -z $BAZEL || $BAZEL == /usr/bin/bazel* || ${USE_BAZEL_VERSION:-} == /usr/bin/bazel* ]]; then
    [[ -d /usr/share/bazel/rules/java ]] || echo bazel-rules-java
    [[ -d /usr/share/bazel/rules/proto ]] || echo bazel-rules-proto
  fi
}

# Prints the missing packages that only tests need: nginx and openssl are for cache servers.
missing_packages_of_tests() {
  [[ -x /usr/sbin/nginx ]] || echo nginx-light
  command -v openssl >/dev/null || echo openssl
}

# Those that only nightly tests need: some are built for 64-bit ARM and run in an emulator, ccache compiles for Bazel,
# faketime builds on another day, diffoscope says how two builds differ, and clangd reads the output of
# scripts/compile_commands.py.
missing_packages_of_nightly_tests() {
  command -v ccache >/dev/null || echo ccache
  command -v diffoscope >/dev/null || echo diffoscope-minimal
  command -v faketime >/dev/null || echo faketime
  command -v clangd >/dev/null || echo clangd
  command -v aarch64-linux-gnu-g++ >/dev/null || echo g++-aarch64-linux-gnu
  command -v qemu-aarch64 >/dev/null || command -v qemu-aarch64-static >/dev/null || echo qemu-user
}

# install_system_packages [tests] [nightly_tests]
install_system_packages() {
  local missing as_root=() more
  find_bazel
  missing=$( (missing_packages; for more in "$@"; do "missing_packages_of_$more"; done) | xargs)
  if [[ -n $missing ]]; then
    command -v apt-get >/dev/null ||
      give_up "Packages are missing (with Debian's names): $missing" \
        "Install them with the package manager of this system, then run this again."
    if [[ $(id -u) != 0 ]]; then
      command -v sudo >/dev/null ||
        give_up "Installing $missing requires root, and there is no sudo." "As root:  apt-get install $missing"
      as_root=(sudo)
    fi
    say "Installing system packages with apt: $missing"
    # Hides apt's hundreds of lines; errors go to stderr.
    # shellcheck disable=SC2086  # A list of words.
    "${as_root[@]}" apt-get update -qq >/dev/null &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends $missing >/dev/null ||
      give_up "apt could not install $missing." "See its message above; then run this again."
  fi
  find_python ||
    give_up "No Python was found that is new enough. $(python3 -B -c 'import bazel.pybuild' 2>&1)" \
      "Install one with its headers and venv, such as:  apt-get install python3.11 python3.11-dev python3.11-venv"
  find_bazel
  [[ -n $BAZEL ]] ||
    give_up "Bazel was not found." \
      "Install one:  apt-get install bazel-bootstrap bazel-rules-java bazel-rules-proto"
  choose_bazel
}

# other_versions PYTHON TORCH: versions such as 3.12 and 2.14, or empty for those of this project. jax is the newest one.
other_versions() {
  PYTHON_VERSION=$1 TORCH_VERSION=$2
  ENVIRONMENT=${XDG_CACHE_HOME:-$HOME/.cache}/torch_xla_lite/environments
  ENVIRONMENT+=/python-${PYTHON_VERSION:-own}-torch-${TORCH_VERSION:-own}
  mkdir -p "$(dirname "$ENVIRONMENT")"
  [[ -z $PYTHON_VERSION ]] || "python$PYTHON_VERSION" -c '' 2>/dev/null ||
    give_up "There is no python$PYTHON_VERSION on PATH." "Install it, with its headers and venv."
}

# The content of requirements.txt, for the versions that were asked for.
requirements() {
  if [[ -z $PYTHON_VERSION$TORCH_VERSION ]]; then
    cat requirements.txt
  else
    sed -E "s/^torch==.*/torch==${TORCH_VERSION:-2.*}.*/; s/^(jax|jaxlib)==.*/\1/; s/^(setuptools)==.*/\1/" requirements.txt
  fi
}

# pip_install ENVIRONMENT ARGUMENTS... installs packages. pip compiles their Python code on one core, and their tests, too.
pip_install() {
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile "${@:2}" || return
  "$1/bin/python" -m compileall -qq -j 0 -x '/tests?/' "$1"/lib/python*/site-packages || true  # There are templates.
}

make_environment() {
  # A copy of the requirements tells what is installed. It is renamed last, so an interrupted installation is repeated.
  local installed=$ENVIRONMENT/.requirements.txt python=$ENVIRONMENT/bin/python
  cmp -s <(requirements) "$installed" && "$python" -c '' 2>/dev/null && return
  if [[ ! -e $ENVIRONMENT && ! -L $ENVIRONMENT ]]; then
    say "Creating $ENVIRONMENT with $("$BASE_PYTHON" --version)"
    "$BASE_PYTHON" -m venv "$ENVIRONMENT"
  elif ! "$python" -m pip --version >/dev/null 2>&1; then
    # uv makes environments without pip, and an interrupted creation leaves one.
    say "Installing pip into $ENVIRONMENT"
    "$python" -m ensurepip >/dev/null ||
      give_up "$ENVIRONMENT has no Python that works." "Move it away, then run this again:  mv $ENVIRONMENT $ENVIRONMENT.old"
  fi
  say "Installing the Python packages of requirements.txt into $ENVIRONMENT"
  requirements >"$installed.new"
  pip_install "$ENVIRONMENT" -r "$installed.new" ||
    give_up "pip could not install the packages of requirements.txt." "See its message above; then run this again."
  mv "$installed.new" "$installed"
}

# install_test_packages [nightly]: installs a fixed CUDA toolkit for the tests, whatever toolkit the machine has, and the
# third-party libraries that train on the device. --no-deps: the files are complete, and some of the libraries would
# install another torch.
install_test_packages() {
  local requirements installed
  for requirements in requirements-cuda.txt test/models/requirements.txt ${1:+"test/models/$1.txt"}; do
    installed=$ENVIRONMENT/.${requirements//\//-}
    cmp -s "$requirements" "$installed" && continue
    say "Installing the packages of $requirements into $ENVIRONMENT"
    pip_install "$ENVIRONMENT" --no-deps -r "$requirements" ||
      give_up "pip could not install the packages of $requirements." "See its message above; then run this again."
    cp "$requirements" "$installed"
  done
}

# For the tests of cache servers by gRPC. It does not fit to the versions of requirements.txt.
install_buildgrid() {
  local installed=$ENVIRONMENT/buildgrid/.requirements.txt
  cmp -s test/cache/buildgrid.txt "$installed" && return
  say "Installing the packages of test/cache/buildgrid.txt into $ENVIRONMENT/buildgrid"
  "$ENVIRONMENT/bin/python" -m venv "$ENVIRONMENT/buildgrid" &&
    pip_install "$ENVIRONMENT/buildgrid" --no-deps -r test/cache/buildgrid.txt ||
    give_up "pip could not install the packages of test/cache/buildgrid.txt." "See its message above; then run this again."
  cp test/cache/buildgrid.txt "$installed"
}

# The compiler for GPUs of scripts/bench/gpu_compiler.py, of the version that jaxlib has.
install_gpu_compiler() {
  local version folder=$ENVIRONMENT/gpu_compiler
  version=$("$ENVIRONMENT/bin/python" -c 'from importlib.metadata import version; print(version("jaxlib"))')
  [[ -d $folder/jax_cuda13_pjrt-$version.dist-info ]] && return
  say "Installing XLA's compiler for GPUs into $folder"
  rm -rf "$folder"
  "$ENVIRONMENT/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --target "$folder" \
    "jax-cuda13-pjrt==$version" || give_up "pip could not install jax-cuda13-pjrt." "See its message above; then run this again."
}

configure_bazel() {
  "$ENVIRONMENT/bin/python" -m bazel.pybuild.configure
}
