"""torch.jax, and modules that move between devices."""

import os
import subprocess
import weakref

import jax
import jax.numpy as jnp
import pytest
import torch

import torch_xla_lite
from bazel.pytest_plugin import mostly_nightly
from test.python import programs


def test_the_device_module_is_registered():
    assert torch.jax is torch_xla_lite.device
    assert torch.get_device_module("jax") is torch_xla_lite.device


def test_jax_is_the_accelerator_of_torch():
    assert torch.accelerator.current_accelerator().type == "jax"
    assert torch.accelerator.is_available()
    assert torch.accelerator.device_count() == 1
    assert torch.accelerator.current_device_index() == 0
    assert torch.jax.is_available()
    assert torch.jax.device_count() == 1


@pytest.mark.parametrize("device", [None, 0, "jax", "jax:0", torch.device("jax", 0)])
def test_the_device_can_be_made_current(device):
    torch.jax.set_device(device)
    with torch.jax.device(device):
        assert torch.jax.current_device() == 0


@pytest.mark.parametrize(
    "use", [torch.jax.set_device, lambda place: torch.zeros(1, device=place), torch.ones(1).to]
)
def test_another_index_is_an_error(use):
    with pytest.raises(RuntimeError, match="there is no device jax:1"):
        use("jax:1")


def test_another_kind_of_device_is_an_error():
    with pytest.raises(ValueError, match="expected a jax device, found cpu"):
        torch.jax.set_device("cpu")


def test_methods_carry_the_name():
    tensor = torch.ones(2)
    assert tensor.jax().is_jax
    assert not tensor.is_jax
    assert torch.nn.Linear(2, 2).jax().weight.is_jax


@pytest.mark.parametrize("synchronize", [torch.jax.synchronize, torch.accelerator.synchronize])
def test_synchronize_runs_what_is_recorded(synchronize):
    kept = torch.ones(2, device="jax") + 1
    torch_xla_lite.debug.reset_metrics()
    synchronize()
    assert torch_xla_lite.debug.metrics()["executions"] == 1
    assert kept.tolist() == [2, 2]


def test_synchronize_waits():
    big = torch.ones(1000, 1000, device="jax")
    for _ in range(10):
        big = big @ big / 1000
    torch.jax.synchronize()
    assert jnp.asarray(big).is_ready()


def test_properties_name_what_xla_runs_on():
    assert torch.jax.get_device_properties()["platform"] == jax.default_backend()
    assert torch.jax.get_device_name()


# --- modules --------------------------------------------------------------------------------------


def test_parameters_stay_the_same_objects_there_and_back():
    model = torch.nn.Linear(3, 2)
    before, values = list(model.parameters()), model.weight.tolist()
    for device in ("jax", "cpu"):
        model.to(device)
        assert all(new is old for new, old in zip(model.parameters(), before, strict=True))
        assert {parameter.device.type for parameter in before} == {device}
    assert model.weight.tolist() == values


def test_what_belongs_to_a_parameter_moves_with_it():
    model = torch.nn.Linear(2, 2)
    weight, calls = weakref.ref(model.weight), []
    model.weight.note = "kept"
    model.weight.register_hook(lambda gradient: calls.append("gradient"))
    model.weight.register_post_accumulate_grad_hook(lambda parameter: calls.append(parameter))
    model.bias.requires_grad_(False)
    model(torch.ones(1, 2)).sum().backward()
    model.to("jax")
    assert weight() is model.weight
    assert (model.weight.note, model.weight.requires_grad) == ("kept", True)
    assert not model.bias.requires_grad
    assert model.weight.grad.is_jax
    assert model.weight.grad.tolist() == [[1, 1], [1, 1]]
    model(torch.ones(1, 2, device="jax")).sum().backward()
    assert calls[2] == "gradient"
    assert calls[3] is model.weight


def test_tied_parameters_stay_tied():
    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    second.weight = first.weight
    model = torch.nn.Sequential(first, second).to("jax")
    assert model[0].weight is model[1].weight
    assert model[0].weight.is_jax


@pytest.mark.parametrize(
    "change", [lambda model: model.to("jax", torch.float64), lambda model: model.to("jax").double()]
)
def test_a_change_of_dtype_keeps_the_objects(change):
    model = torch.nn.Linear(2, 2)
    weight = model.weight
    change(model)
    assert model.weight is weight
    assert weight.dtype == torch.float64
    assert weight.is_jax


def test_a_lazy_module_can_be_moved_before_it_has_a_shape():
    model = torch.nn.LazyLinear(2).to("jax")
    assert model(torch.ones(1, 3, device="jax")).shape == (1, 2)
    assert model.weight.is_jax


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("make", [lambda: torch.nn.LSTM(2, 3), lambda: torch.nn.GRU(2, 3)])
@pytest.mark.parametrize(("source", "target"), [("cpu", "jax"), ("jax", "cpu")])
def test_a_module_moves_while_its_graph_is_alive(make, source, target):
    model = make().to(source)
    before = list(model.parameters())
    output, _ = model(torch.ones(4, 1, 2, device=source))
    output.sum().backward(retain_graph=True)
    model.to(target)
    assert all(new is old for new, old in zip(model.parameters(), before, strict=True))
    assert all(p.device.type == p.grad.device.type == target for p in before)
    model(torch.ones(4, 1, 2, device=target))[0].sum().backward()
    with pytest.raises(RuntimeError, match=r"moved to .* after the forward pass"):
        output.sum().backward()


def test_to_empty_gives_parameters_on_the_device():
    with torch.device("meta"):
        model = torch.nn.Linear(2, 2)
    model.to_empty(device="jax")
    assert model.weight.is_jax


def test_a_state_dict_goes_both_ways():
    source, target = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2).to("jax")
    weight = target.weight
    target.load_state_dict(source.state_dict())
    assert target.weight is weight
    assert torch.equal(target.weight.detach().cpu(), source.weight.detach())
    source.load_state_dict({name: value + 1 for name, value in target.state_dict().items()})
    assert torch.equal(source.weight.detach(), target.weight.detach().cpu() + 1)


def test_conversions_on_other_devices_are_not_changed():
    assert not torch.__future__.get_swap_module_params_on_conversion()
    model = torch.nn.Linear(2, 2)
    pointer = model.weight.data_ptr()
    model.to("cpu")
    assert model.weight.data_ptr() == pointer


# --- forks ----------------------------------------------------------------------------------------


def test_a_forked_child_is_recognised():
    torch.ones(1, device="jax").item()
    child = os.fork()
    if child == 0:
        os._exit(7 if torch.jax._is_in_bad_fork() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert not torch.jax._is_in_bad_fork()


@pytest.mark.nightly
def test_using_the_device_in_a_forked_child_is_an_error():
    program = """
import os, torch, torch_xla_lite
torch.ones(1, device="jax").item()
if os.fork() == 0:
    torch.ones(1, device="jax").item()
else:
    os.wait()
"""
    done = programs.run(program, check=True)
    assert "RuntimeError: device jax cannot be used in a forked process" in done.stderr
    assert done.stderr.rstrip().endswith("torch.multiprocessing.set_start_method('spawn')")


_FORK_AND_USE = """
child = os.fork()
if child == 0:
    print("sum", (torch.arange(4.0, device="jax") + 1).sum().item(), flush=True)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def _run_forking(program: str) -> "subprocess.CompletedProcess[str]":
    # With programs of jax's cache, a child that ends with an error waits for ever.
    switched_off = 'jax.config.update("jax_enable_compilation_cache", False)'
    return programs.run(f"import os, jax, torch, torch_xla_lite\n{switched_off}\n{program}")


@pytest.mark.parametrize("mode", mostly_nightly(["first", "repeated"], ["first"]))
def test_children_use_the_device_if_it_was_not_used_before_the_fork(
    mode: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TORCH_XLA_LITE_COMPILE", mode)
    # A value that waits stays usable in the parent.
    program = f"""
waiting = torch.full((3,), 2.0, device="jax") * 3
{_FORK_AND_USE * 2}
print("parent", waiting.sum().item())
"""
    done = _run_forking(program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:3] == ["sum 10.0", "sum 10.0", "parent 18.0"]


@pytest.mark.nightly
def test_a_child_cannot_use_the_device_after_its_parent_used_jax():
    done = _run_forking(f"import jax\njax.numpy.ones(1).block_until_ready()\n{_FORK_AND_USE}")
    assert done.returncode == 1
    assert "device jax cannot be used in a forked process" in done.stderr


@pytest.mark.nightly
def test_a_child_that_used_the_device_has_no_children_that_can():
    program = """
if os.fork() == 0:
    torch.ones(1, device="jax").item()
    if os.fork() == 0:
        torch.ones(1, device="jax").item()
    os.wait()
    can_use = not torch.jax._is_in_bad_fork()
    print("can use it:", can_use, torch.ones(1, device="jax").item(), flush=True)
    os._exit(0)
os.wait()
"""
    done = _run_forking(program)
    assert done.stdout == "can use it: True 1.0\n", done.stderr
    assert "device jax cannot be used in a forked process" in done.stderr


def test_a_forked_child_without_a_tensor_on_the_device_ends():
    program = """
import os, torch, torch_xla_lite
torch.ones(1, device="jax").item()
if os.fork() != 0:
    os.wait()
"""
    programs.run(program, check=True, TORCH_XLA_LITE_COMPILE="repeated")


@pytest.mark.nightly
def test_workers_of_a_data_loader_can_make_cpu_tensors():
    program = """
import torch, torch_xla_lite
torch.ones(1, device="jax").item()
class Data(torch.utils.data.Dataset):
    def __len__(self): return 8
    def __getitem__(self, index): return torch.ones(2) * index
loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2)
print(sum(batch.to("jax").sum().item() for batch in loader))
"""
    done = programs.run(program, check=True)
    assert done.stdout.strip() == "56.0"
    assert done.stderr == ""  # in particular no warning about the fork


def test_workers_of_a_data_loader_that_use_the_device_get_an_error():
    program = """
import torch, torch_xla_lite
data = torch.ones(8, device="jax")
data.sum().item()
next(iter(torch.utils.data.DataLoader(data, batch_size=4, num_workers=1)))
"""
    done = programs.run(program)
    assert "device jax cannot be used in a forked process" in done.stderr
    assert "os.fork() was called" not in done.stderr


@pytest.mark.nightly
def test_other_forks_still_warn():
    program = """
import multiprocessing, torch, torch_xla_lite
torch.ones(1, device="jax").item()
worker = multiprocessing.get_context("fork").Process(target=print)
worker.start()
worker.join()
"""
    done = programs.run(program, check=True)
    assert "os.fork() was called" in done.stderr
