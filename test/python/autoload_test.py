"""Programs that do not import the package: torch knows the name of the device, and the first use
of the name loads the package."""

import inspect
import os
import pickle
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch

import torch_xla_lite
from test.models import libraries
from test.python import programs
from torch_xla_lite.device import autoload

_SOURCE = Path(autoload.__file__)

# What torch does at the end of its import, in a process that has imported torch.
_IMPORT_TORCH = f"""
import importlib.util, sys, torch
spec = importlib.util.spec_from_file_location("torch_xla_lite_autoload", {str(_SOURCE)!r})
sys.modules[spec.name] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules[spec.name])
sys.modules[spec.name].register()

def is_loaded():
    return "torch_xla_lite" in sys.modules
"""


def run(program: str, **variables: str) -> list[str]:
    return programs.run(_IMPORT_TORCH + program, check=True, **variables).stdout.split()


@pytest.mark.few_daily(1)
@pytest.mark.parametrize(
    "use",
    [
        "torch.ones(2, device='jax')",
        "torch.ones(2).to('jax')",
        "torch.as_tensor([1, 2], device=torch.device('jax', 0))",
        "torch.set_default_device('jax'); torch.tensor([1.0])",
        "torch.nn.Linear(2, 2, device='jax')",
        "torch.autocast('jax', dtype=torch.bfloat16)",
        "torch.jax.synchronize()",
        "from torch.jax import is_available; assert is_available()",
        "assert torch.ones(2).pin_memory().is_pinned()",
        "assert torch.jit.script(torch.nn.Linear(2, 2)).to('jax').weight.is_jax",
    ],
)
def test_the_first_use_of_the_name_loads_the_package(use):
    program = f"""
assert not is_loaded()
{use}
print(is_loaded(), torch.jax.__name__)
"""
    assert run(program) == ["True", "torch_xla_lite.device"]


@pytest.mark.nightly
def test_parameters_stay_the_same_objects_when_their_move_loads_the_package():
    program = """
model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
parameters = list(model.parameters())
model.to("jax")
print(all(a is b and a.is_jax for a, b in zip(parameters, model.parameters(), strict=True)))
"""
    assert run(program) == ["True"]


@pytest.mark.nightly
def test_a_seed_from_before_holds_on_the_device():
    program = """
torch.manual_seed(3)
assert not is_loaded()
first = torch.randn(4, device="jax")
torch.manual_seed(3)
print(torch.equal(first, torch.randn(4, device="jax")), torch.jax.initial_seed())
"""
    assert run(program) == ["True", "3"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("save", "load"),
    [
        (lambda x, f: torch.save(x.cpu(), f), "torch.load(f, map_location='jax')"),
        (lambda x, f: Path(f).write_bytes(pickle.dumps(x)), "pickle.load(open(f, 'rb'))"),
        (lambda x, f: torch.jit.script(torch.nn.PReLU().jax()).save(f), "torch.jit.load(f).weight"),
    ],
)
def test_a_file_can_be_loaded_to_the_device(save, load: str, tmp_path: Path):
    save(torch.ones(2, device="jax"), str(tmp_path / "file"))
    program = f"import pickle; f = {str(tmp_path / 'file')!r}; print({load}.device)"
    assert run(program) == ["jax:0"]


@pytest.mark.nightly
def test_a_file_of_safetensors_can_be_loaded_to_the_device(tmp_path: Path):
    program = f"""
from safetensors.torch import load_file, save_file
save_file({{"a": torch.ones(2)}}, {str(tmp_path / "a")!r})
print(load_file({str(tmp_path / "a")!r})["a"].device, is_loaded())
print(load_file({str(tmp_path / "a")!r}, device="jax")["a"].device)
"""
    assert run(program) == ["cpu", "False", "jax:0"]


@pytest.mark.nightly
@pytest.mark.parametrize("option", ["jax", "cpu"])
def test_lightning_loads_the_package_for_the_name_alone(option: str):
    libraries.require("lightning.pytorch")
    program = f"""
sys.path.append({str(Path(libraries.__file__).parent)!r})
import libraries
trainer = libraries.require("lightning.pytorch").Trainer(
    accelerator={option!r}, logger=False, enable_checkpointing=False)
print("->", trainer.strategy.root_device.type, is_loaded())
"""
    assert run(program)[-2:] == [option, str(option == "jax")]


@pytest.mark.nightly
def test_a_file_of_tensors_on_jax_names_the_remedy_where_the_device_has_no_name(tmp_path: Path):
    torch.save(torch.ones(2, device="jax"), tmp_path / "x.pt")
    program = f"""
try:
    torch.load({str(tmp_path / "x.pt")!r})
except RuntimeError as error:
    print("map_location='cpu'" in str(error))
print(torch.load({str(tmp_path / "x.pt")!r}, map_location="cpu").tolist())
import torch_xla_lite
print(torch.load({str(tmp_path / "x.pt")!r}).device)
"""
    lines = run(program, TORCH_XLA_LITE_AUTOLOAD="0")
    assert lines == ["True", "[1.0,", "1.0]", "jax:0"]


@pytest.mark.nightly
def test_who_took_the_module_before_has_the_functions_of_the_package():
    program = """
module = torch.get_device_module("jax")
torch.ones(2, device="jax")
print(module.device_count() == 1, module.is_available(), torch.accelerator.is_available())
"""
    assert run(program) == ["True"] * 3


def test_programs_that_do_not_use_the_device_load_nothing():
    program = """
import io, warnings
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader
x = torch.ones(3, 2, requires_grad=True)
(x * 2).sum().backward()
assert not torch.accelerator.is_available() and torch.accelerator.device_count() == 0
assert torch.accelerator.current_accelerator(check_available=True) is None
torch.manual_seed(1), torch.seed()
with torch.random.fork_rng():
    torch.randn(2)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert not next(iter(DataLoader(x.detach(), pin_memory=True))).is_pinned()
for reentrant in (True, False):
    checkpoint(torch.nn.functional.dropout, x, use_reentrant=reentrant).sum().backward()
with torch.autocast("cpu"):
    torch.nn.Linear(2, 2)(x)
with torch.profiler.profile():
    x + 1
file = io.BytesIO()
torch.save(torch.nn.Linear(2, 2).double().to("cpu").state_dict(), file)
file.seek(0)
torch.load(file)
assert "synchronize" in dir(torch.jax) and not hasattr(torch.jax, "Scheduling")
print(is_loaded())
"""
    assert run(program)[-1] == "False"


@pytest.mark.nightly
def test_torch_compile_and_export_for_the_cpu_load_nothing():
    program = """
import torch.export
torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
torch.compile(lambda x: x + 1)(torch.ones(2))
torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
print(is_loaded())
"""
    assert run(program)[-1] == "False"


def test_a_broken_package_breaks_only_what_uses_it():
    program = """
sys.modules["torch_xla_lite"] = None
print(torch.ones(2).sum().item())
try:
    torch.ones(2, device="jax")
except ImportError as error:
    print("torch_xla_lite" in str(error))
"""
    assert run(program) == ["2.0", "True"]


def test_a_variable_switches_it_off():
    program = "print(torch._C._get_privateuse1_backend_name())"
    assert run(program, TORCH_XLA_LITE_AUTOLOAD="0") == ["privateuseone"]


def test_a_problem_is_one_line_and_no_error(monkeypatch, capsys):
    def fail():
        raise AttributeError("torch has changed")

    monkeypatch.setattr(autoload, "_register", fail)
    monkeypatch.setattr(autoload, "_is_wanted", lambda *_: True)
    autoload.register()
    (line,) = capsys.readouterr().err.splitlines()
    assert "torch has changed" in line
    assert "TORCH_XLA_LITE_AUTOLOAD=0" in line


_OURS = [autoload.__name__]


@pytest.mark.parametrize(
    ("environ", "backends", "has_gpu", "wanted"),
    [
        ({}, _OURS, False, True),
        ({}, _OURS, True, False),
        ({}, [*_OURS, "torch_other"], False, False),
        ({"TORCH_XLA_LITE_AUTOLOAD": "1"}, _OURS, True, True),
        ({"ACCELERATE_TORCH_DEVICE": "jax:0"}, _OURS, True, True),
        ({"ACCELERATE_TORCH_DEVICE": "cuda"}, _OURS, True, False),
    ],
)
def test_it_takes_the_place_of_no_other_accelerator(
    monkeypatch, environ, backends, has_gpu, wanted
):
    monkeypatch.setattr(autoload, "_has_another_accelerator", lambda: has_gpu)
    monkeypatch.setattr(metadata, "entry_points", lambda group: entries(group, backends))
    assert autoload._is_wanted(environ) == wanted


def entries(group, modules):
    return [metadata.EntryPoint(module, f"{module}:register", group) for module in modules]


def test_the_names_are_those_of_the_device_module():
    module = torch_xla_lite.device
    own = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and inspect.getmodule(value) is module
    }
    internal = {"register", "sync"}
    assert own - internal | {"Stream", "default_stream"} == set(autoload.NAMES)
    assert dir(torch.jax) == list(autoload.NAMES)


def installed(folder: Path) -> dict[str, str]:
    """Installs the module as a wheel does; the variables of a process that sees it."""
    (folder / "torch_xla_lite_autoload.py").write_bytes(_SOURCE.read_bytes())
    info = folder / "torch_xla_lite-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: torch_xla_lite\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[torch.backends]\ntorch_xla_lite = torch_xla_lite_autoload:register\n"
    )
    root = str(_SOURCE.parents[2])
    paths = os.pathsep.join([str(folder), root])
    return {"PYTHONPATH": paths, "TORCH_DEVICE_BACKEND_AUTOLOAD": "1"}


def test_import_torch_is_enough(tmp_path):
    (tmp_path / "train.py").write_text("""
import argparse, sys, torch
parser = argparse.ArgumentParser()
parser.add_argument("--device")
device = parser.parse_args().device
print("torch_xla_lite" in sys.modules, "jax" in sys.modules)
print((torch.arange(3, device=device) * 2).tolist(), "torch_xla_lite" in sys.modules)
""")
    command = (sys.executable, tmp_path / "train.py", "--device", "jax")
    done = programs.call(*command, **installed(tmp_path))
    assert (done.stdout.splitlines(), done.stderr) == (["False False", "[0, 2, 4] True"], "")


@pytest.mark.nightly
def test_a_program_may_import_the_package_first(tmp_path):
    program = "import torch_xla_lite, torch; print(torch.jax is torch_xla_lite.device)"
    done = programs.call(sys.executable, "-c", program, **installed(tmp_path))
    assert (done.stdout, done.stderr) == ("True\n", "")
