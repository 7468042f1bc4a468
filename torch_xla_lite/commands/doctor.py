"""torch-xla-lite doctor: checks each part of this installation.

    ok   Python: 3.11, as built for
    bad  torch: torch_xla_lite was built for torch 2.13.0 but torch 2.12.1 is installed.
         Install a wheel that was built for this torch, or build one in its sources: ...

In a checkout, bazel/pybuild/commands/doctor.py first checks what builds need; `python setup.py
doctor` is the same command. The compiled parts are loaded in a separate process, because
incompatible libraries may end it without a message.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import json as json_format
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator

from ..startup import edits, preflight, variables
from .finding import MARK, Finding

_TIMEOUT_S = 300
# The two wheels that together have the files of the complete wheel.
_HALVES = ("torch_xla_lite_lib", "torch_xla_lite_python")


# Each step prints its line when it has succeeded, so the first missing line tells which one failed.
_PROBE = """
import json, sys
sys.path.insert(0, sys.argv[1])

def done(name, detail, ok=True, remedy=""):
    print("\\n" + sys.argv[3] + json.dumps([name, ok, detail, remedy]), flush=True)

import torch
done("import torch", "torch itself works")
built, used = sys.argv[2], str(int(torch._C._GLIBCXX_USE_CXX11_ABI))
done("C++ ABI", f"_GLIBCXX_USE_CXX11_ABI={used}, torch's; built with {built}", built in ("", used),
     "" if built in ("", used) else "Rebuild it for this torch:  python setup.py develop")
import torch_xla_lite
from torch_xla_lite.lowering.base import ffi
ffi.register()
done("compiled parts", "the bridge and ATen's kernels load")
found = (torch.arange(4.0, device="jax") * 2 + 1).tolist()
if found != [1, 3, 5, 7]:
    raise ArithmeticError(f"2 * [0, 1, 2, 3] + 1 is {found}")
done("graph", "a small graph is compiled and gives the right numbers")
import jax
kinds = sorted({f"{d.platform} ({d.device_kind})" for d in jax.devices()})
done("device", "jax computes on " + ", ".join(kinds))
from torch_xla_lite.commands import doctor
done("TPU", *doctor.tpus())
"""
_STEPS = (
    "import torch",
    "C++ ABI",
    "compiled parts",
    "graph",
    "device",
    "TPU",
    "end of the process",
)


def main(*, json: bool) -> int:
    """Prints the findings, or one JSON object, and returns the exit code, 1 if there is a
    problem."""
    findings = []
    for finding in itertools.chain(_of_builds(), inspect()):
        findings.append(finding)
        if not json:
            print(_line(finding), flush=True)
    healthy = all(finding.ok for finding in findings)
    if json:
        rows = [finding._asdict() for finding in findings]
        print(json_format.dumps({"ok": healthy, "checks": rows}, indent=1))
    elif healthy:
        print("All is well.")
    return 0 if healthy else 1


def inspect() -> Iterator[Finding]:
    """Checks one part after the other; after a problem, skips the checks that depend on it."""
    checks: dict[str, Callable[[], str]] = {
        "build": _built,
        "variables": _variables_known,
        "Python": _python,
        "torch": lambda: _version("torch", "TORCH_VERSION"),
        "jaxlib": lambda: _version("jaxlib", "JAXLIB_VERSION"),
        # Each jax is released with a jaxlib of the same version.
        "jax": lambda: _version("jax", "JAXLIB_VERSION"),
        "wheels": _wheels,
    }
    for name, check in checks.items():
        try:
            yield Finding(name, True, check())
        except (ImportError, ValueError) as error:
            yield _problem(name, str(error))
            if name not in ("variables", "wheels"):
                return
    if edited := edits.newest(preflight.PACKAGE):
        detail = preflight.outdated(edited)
        yield Finding("sources", True, detail, "Build them:  python setup.py develop")
    yield from _probed()
    yield _cuda()


def _built() -> str:
    preflight.build_info()
    from .. import __config__

    mode = __config__.parameters()["mode"]
    return f"torch_xla_lite {__config__.version()}, {mode}, in {preflight.PACKAGE}"


def _variables_known() -> str:
    variables.check(os.environ)
    found = [name for name in os.environ if name.startswith(variables.PREFIX)]
    return f"{len(found)} of ours set, all known" if found else "none of ours is set"


def _python() -> str:
    version = preflight.build_info().PYTHON_VERSION
    preflight.check_python(version)
    return f"{version}, as built for"


def _version(package: str, constant: str) -> str:
    version = getattr(preflight.build_info(), constant)
    # Read from the metadata: importing a broken package may end the process.
    installed = importlib.metadata.version
    preflight.check_version(package, built_for=version, installed=installed)
    return f"{version}, as built for"


def _wheels() -> str:
    """Checks that each file belongs to one wheel: pip installs the complete wheel over the library
    wheel and the Python-only wheel without a warning."""
    beside = [str(preflight.PACKAGE.parent)]
    library, code = (preflight.installed(name, beside) for name in _HALVES)
    halves = [half.name for half in (library, code) if half]
    if not halves:
        return "one installation"
    if preflight.installed("torch_xla_lite", beside):
        raise ImportError(
            f"The complete wheel is installed over {' and '.join(halves)}; uninstalling that later "
            "would remove files of the complete wheel.\n"
            "Uninstall it, then reinstall torch_xla_lite:  "
            f"python -m pip uninstall {' '.join(halves)}"
        )
    if code is None:
        return "the libraries alone"
    wanted = next(name for name in code.requires or [] if name.startswith(_HALVES[0]))
    if library is None or wanted != f"{_HALVES[0]}=={library.version}":
        there = f"{_HALVES[0]} {library.version} is installed" if library else "it is not installed"
        raise ImportError(
            f"{_HALVES[1]} requires {wanted}, but {there}.\n"
            f"Install what it requires:  python -m pip install --no-deps '{wanted}'"
        )
    return "two, the libraries and the code that requires them"


def _probed() -> Iterator[Finding]:
    """The findings of a separate process that loads the compiled parts."""
    # Without the variables: a wrong value is reported already, and would hide these findings.
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(variables.PREFIX)
    }
    abi = preflight.build_info().CXX11_ABI
    try:
        process = subprocess.run(
            # So that it imports this package, not another one that is installed.
            [sys.executable, "-c", _PROBE, str(preflight.PACKAGE.parent), abi, MARK],
            env=environ,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield _problem("compiled parts", f"Loading them did not end within {_TIMEOUT_S} s.")
        return
    told = list(_told(process.stdout))
    yield from told
    if process.returncode == 0:
        return
    problem = _error(process.stderr) or f"The process ended with code {process.returncode}."
    step = _STEPS[len(told)]
    if step == "import torch":
        # torch is not built by this project.
        wanted = f"torch=={preflight.build_info().TORCH_VERSION}"
        remedy = f"python -m pip install --force-reinstall --no-deps '{wanted}'"
        problem += f"\nReinstall it:  {remedy}"
    yield _problem(step, problem)


def _error(stderr: str) -> str:
    """The last message; of a traceback, the error without the lines of code."""
    lines = stderr.strip().splitlines()
    start = max((i for i, line in enumerate(lines) if "Error: " in line), default=len(lines) - 1)
    return "\n".join(lines[max(start, 0) :])


def _problem(name: str, text: str) -> Finding:
    """A finding from an error message; the last of several lines is the remedy."""
    *problem, last = text.splitlines()
    if not problem:
        return Finding(name, False, last, preflight.build_it("again"))
    return Finding(name, False, "\n".join(problem), last)


def tpus() -> tuple[str, bool, str]:
    """Whether jax uses the TPUs of this machine: detail, success and remedy of the check."""
    import jax
    from jax._src import hardware_utils  # It has no public name.

    chips, _ = hardware_utils.num_available_tpu_chips_and_device_id()
    used = sum(device.platform == "tpu" for device in jax.local_devices())
    if not chips:
        return "there is none", True, ""
    package = f"'jax[tpu]=={jax.__version__}'"
    remedy = f"Install jax's package for them, without JAX_PLATFORMS:  pip install {package}"
    return f"jax uses {used} of {chips} chips", used > 0, "" if used else remedy


def _cuda() -> Finding:
    """Whether there are CUDA kernels; their absence is not a problem."""
    library = preflight.PACKAGE / "lib" / "libtorch_xla_lite_cuda.so"
    if not library.exists():
        return Finding("CUDA", True, "built without CUDA kernels")
    if not any(os.path.exists(file) for file in ("/dev/nvidiactl", "/dev/dxg")):
        return Finding("CUDA", True, "built with CUDA kernels; there is no NVIDIA device")
    return Finding("CUDA", True, "built with CUDA kernels, and there is an NVIDIA device")


def _of_builds() -> Iterator[Finding]:
    """What builds need; only a source tree has the code that checks it."""
    tree = preflight.PACKAGE.parent
    if not (tree / "bazel" / "pybuild" / "commands" / "doctor.py").exists():
        return
    process = subprocess.run(
        [sys.executable, "-m", "bazel.pybuild.commands.doctor"],
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    yield from _told(process.stdout)
    if process.returncode:
        yield _problem("checks of the build", _error(process.stderr))


def _told(output: str) -> Iterator[Finding]:
    """The findings that another process has told."""
    for line in output.splitlines():
        if line.startswith(MARK):
            yield Finding(*json_format.loads(line.removeprefix(MARK)))


def _line(finding: Finding) -> str:
    word = "bad" if not finding.ok else "warn" if finding.remedy else "ok"
    first, *others = f"{finding.name}: {finding.detail}".splitlines()
    lines = [*_wrapped(first), *others, *finding.remedy.splitlines()]
    return f"{word:<5}" + "\n     ".join(lines)


def _wrapped(text: str) -> list[str]:
    """A line as lines that fit the terminal; as it is where a program reads it."""
    if not sys.stdout.isatty():
        return [text]
    width = shutil.get_terminal_size().columns - 5
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
