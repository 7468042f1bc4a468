"""Writes .bazelrc.generated, which .bazelrc imports: Bazel's settings for this machine.

    python -m bazel.pybuild.configure     # a bare `bazel build //...` then uses this Python

A second file, .bazelrc.generated.json, contains the inputs of the settings. `develop` compares
them in milliseconds, and inspects the machine again only when they have changed. A third file, with
permissions for this user only, contains the remote cache and its credentials.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from bazel.pybuild import files, lock
from bazel.pybuild.cache import folders
from bazel.pybuild.errors import BuildError, message
from bazel.pybuild.machine import cuda, find_bazel, inputs, packages
from bazel.pybuild.options import Options

FILE = ".bazelrc.generated"
STATE = f"{FILE}.json"
REMOTE_CACHE = f"{FILE}.remote-cache"


class State(NamedTuple):
    """The configuration of a tree.

    Attributes:
      inputs: everything that the settings depend on.
      toolchain: files that its fingerprint depends on -> their times.
      settings: the content of .bazelrc.generated.
      cuda: whether there is a CUDA library, and why.
    """

    inputs: inputs.Inputs
    toolchain: dict[str, int | None]
    settings: str
    cuda: cuda.Cuda

    @property
    def bazel(self) -> Path:
        """The Bazel to call."""
        return Path(self.inputs.bazel)


def ensure(root: Path, options: Options, environ: Mapping[str, str]) -> State:
    """Writes .bazelrc.generated and the file of the remote cache if they are missing or outdated.

    It holds the lock of the tree: a build of another environment must not use these settings.

    Args:
      root: of the tree.
      options: the startup options matter, because other ones would restart Bazel's server.
      environ: usually os.environ.

    Raises:
      BuildError: a requirement of the build is not met; the file did not change.
    """
    bazel = find_bazel.find(options.bazel, environ.get("PATH", os.defpath))
    with lock.exclusive(root, wait=options.waits):
        remove_old_links(root)
        state = _ensure_settings(root, bazel, options, environ)
        _ensure_remote_cache(root, bazel, options, environ)
        return state


def remove_old_links(root: Path) -> None:
    """Removes Bazel's links of a tree that was renamed or copied: `//...` would follow them."""
    ours = {"bazel-bin", "bazel-out", "bazel-testlogs", f"bazel-{root.name}"}
    for entry in os.scandir(root):
        if entry.name.startswith("bazel-") and entry.is_symlink() and entry.name not in ours:
            os.unlink(entry)


def _ensure_settings(
    root: Path, bazel: Path, options: Options, environ: Mapping[str, str]
) -> State:
    wanted = (*packages.BUILT_AGAINST, packages.LIBRARY)
    installed = packages.installed(wanted, packages.search_path())
    cache = folders.home(environ)
    now = inputs.collect(root, bazel, installed, cache, options, environ)
    current = read(root)
    if current is not None and current.inputs == now:
        before = current.toolchain
        if before == inputs.times(before):
            return current
    from concurrent.futures import ThreadPoolExecutor

    from bazel.pybuild import bazelrc
    from bazel.pybuild.call import client
    from bazel.pybuild.machine import preflight, toolchain

    preflight.check(root, installed, environ, options.any_version)
    if not any(option.startswith("--disk_cache=") for option in options.build_options):
        preflight.check_cache(cache, "The build cache is in")
        # The package keeps programs below it, and refuses a folder that others may write.
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    startup = client.startup_options(*find_bazel.rc_files_of_user(root))
    if not any(o.startswith("--output_") for o in (*startup, *options.startup_options)):
        preflight.check_cache(Path.home() / ".cache" / "bazel", "Bazel's own files are in")
    # What takes seconds, side by side. Most of the time it waits for compilers, and for Bazel's
    # server to start, which the build needs anyway.
    with ThreadPoolExecutor() as pool:
        known = pool.submit(bazelrc.known_flags, root, bazel, options, environ)
        gpu = pool.submit(cuda.inspect, options, environ)
        preflight.check_compiler(environ)
        tools = toolchain.inspect(environ)
        flags, decision = known.result(), gpu.result()
    lines = bazelrc.settings(installed, decision, flags, tools, cache)
    if "enable_bzlmod" in flags:
        lines += bazelrc.replaced_modules(root, bazel)
    text = "".join(f"{line}\n" for line in lines)
    state = State(now, inputs.times(tools.files), text, decision)
    import json

    files.replace(root / FILE, state.settings)
    values = {**state._asdict(), "inputs": now._asdict(), "cuda": decision.as_json()}
    files.replace(root / STATE, json.dumps(values, indent=1) + "\n")
    if current is None or current.cuda != decision:
        print(f"torch_xla_lite: CUDA kernels: {decision.line}", flush=True)
    return state


def _ensure_remote_cache(
    root: Path, bazel: Path, options: Options, environ: Mapping[str, str]
) -> None:
    """Writes the file that defines --config=remote-cache; removes it without a remote cache."""
    file = root / REMOTE_CACHE
    if options.remote_cache is None:
        file.unlink(missing_ok=True)
        return
    from bazel.pybuild.cache import remote_cache

    wanted = "".join(f"{line}\n" for line in remote_cache.lines(options))
    if not file.exists() or file.read_text() != wanted or file.stat().st_mode & 0o077:
        if options.remote_cache_read_token or options.remote_cache_write_token:
            from bazel.pybuild.call import client

            # Closes the folder with Bazel's logs to others: Bazel 4 writes credentials to them.
            logs = client.output_base(root, [str(bazel), *options.startup_options], environ)
            if logs.is_absolute() and logs.is_dir():
                logs.chmod(0o700)
        files.replace(file, wanted, 0o600)


def read(root: Path) -> State | None:
    """The configuration of the tree; None if there is none, or if its files were edited."""
    import json

    try:
        values = json.loads((root / STATE).read_text())
        values["inputs"] = inputs.Inputs(**values["inputs"])
        values["cuda"] = cuda.Cuda.from_json(values["cuda"])
        state = State(**values)
        return state if (root / FILE).read_text() == state.settings else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def main() -> int:
    """Writes the file for this interpreter, and prints what it did."""
    root = Path(__file__).resolve().parents[2]
    from bazel.pybuild import options as options_table

    try:
        before = read(root)
        state = ensure(root, options_table.read(os.environ), os.environ)
    except (BuildError, OSError) as error:
        print(f"error: {message(error)}", file=sys.stderr)
        return 1
    written = "up to date" if state == before else "written"
    print(f"{FILE}: {written}, for {inputs.python_executable()} and {state.bazel}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
