"""Checks a wheel that was built with torch for CUDA, in an environment that has this torch.

    ENVIRONMENT/bin/python scripts/ci/check_cuda_wheel.py dist/torch_xla_lite-*.whl sm_90 compute_90

The CUDA library has code for the named architectures and for no others. Installed into a folder of
its own, the package is imported, and trains on the CPU as PyTorch does: GPUs are hidden. Prints one
line for each; the exit code is 1 at the first that does not hold.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from scripts.ci import nvidia  # noqa: E402

_LIBRARY = Path("torch_xla_lite", "lib", "libtorch_xla_lite_cuda.so")

# Its argument is the folder that the package has to come from.
_TRAIN = """
import sys
from pathlib import Path

import torch
import torch_xla_lite
from torch_xla_lite import __config__


def losses(device):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.linspace(-1, 1, 64).reshape(8, 8).to(device)
    for _ in range(3):
        optimizer.zero_grad()
        loss = (model(inputs) - 1).square().mean()
        loss.backward()
        optimizer.step()
        yield loss.item()


assert Path(sys.argv[1]) in Path(torch_xla_lite.__file__).parents, torch_xla_lite.__file__
found = [*losses("jax")]
torch.testing.assert_close(found, [*losses("cpu")])
print("built with: CUDA", __config__.parameters()["cuda"])
print("imported with: torch", torch.__version__, "for CUDA", torch.version.cuda)
print("losses:", *(f"{loss:.4f}" for loss in found))
"""


class Failure(Exception):
    """What is wrong with the wheel."""


def install(wheel: Path, folder: Path) -> None:
    """Installs a wheel into a folder, without what it requires."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--target", folder, wheel], check=True)


def check_codes(library: Path, expected: set[str]) -> None:
    """Checks which architectures a library has code for.

    Args:
      library: the CUDA library of an installed wheel.
      expected: codes such as sm_90, machine code, and compute_90, PTX.

    Raises:
      Failure: the library is missing, or has other codes.
    """
    if not library.exists():
        raise Failure(f"the wheel has no {library.name}: setup.py says above why it was not built")
    found = nvidia.codes(library)
    if found != expected:
        names = [" ".join(sorted(codes)) for codes in (found, expected)]
        raise Failure(f"{library.name} has code for {names[0]}, not for {names[1]}")


def train(folder: Path) -> str:
    """Trains with the package of a folder, in a process that sees no GPU; returns its output."""
    environ = {**os.environ, "PYTHONPATH": str(folder), "CUDA_VISIBLE_DEVICES": ""}
    # Compiled at once, so that XLA takes part.
    environ |= {"TORCH_XLA_LITE_COMPILE": "first", "TORCH_XLA_LITE_COMPILATION_CACHE": "0"}
    command = [sys.executable, "-P", "-c", _TRAIN, folder]
    process = subprocess.run(
        command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True, check=False
    )
    if process.returncode:
        raise Failure("the installed package does not train; see above")
    return process.stdout


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path, metavar="WHEEL")
    parser.add_argument("codes", nargs="+", metavar="CODE")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cuda-wheel-") as name:
        folder = Path(name).resolve()
        try:
            install(arguments.wheel, folder)
            check_codes(folder / _LIBRARY, set(arguments.codes))
            print(f"{_LIBRARY.name} has code for", *arguments.codes)
            print(train(folder), end="")
        except Failure as failure:
            print(f"error: {failure}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
