"""default_env(): what a CPU factory gives, in both modes, nested, in threads and after errors."""

import copy
import functools
import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch.overrides import BaseTorchFunctionMode, TorchFunctionMode

import torch_xla_lite
from torch_xla_lite import Environment, XLATensor2, default_env


@pytest.fixture
def jax_env():
    """A new environment in which factories give jax tensors; not entered yet."""
    env = Environment()
    env.config.use_torch_native_for_cpu_tensor = False
    return env


def modes() -> int:
    return torch._C._len_torch_function_stack()


# --- the default: CPU tensors stay native ---------------------------------------------------------


def test_by_default_what_names_no_device_is_of_the_cpu_and_nothing_is_intercepted():
    with default_env() as env:
        assert env is default_env()
        assert modes() == 0
        assert torch.randn(1).is_cpu
        made = torch.randn(1, device="jax")
        assert isinstance(made, XLATensor2)
        assert made.cpu().is_cpu


# --- the CPU means jax ----------------------------------------------------------------------------

OF_A_SIZE = ("zeros", "ones", "empty", "arange", "eye", "rand", "randn", "randperm")
FACTORIES = {
    **{name: functools.partial(getattr(torch, name), 2) for name in OF_A_SIZE},
    "full": lambda **k: torch.full((2,), 3.0, **k),
    "linspace": lambda **k: torch.linspace(0, 1, 2, **k),
    "randint": lambda **k: torch.randint(5, (2,), **k),
    "normal": lambda **k: torch.normal(0.0, 1.0, (2,), **k),
    "tensor": lambda **k: torch.tensor([1.0, 2.0], **k),
    "as_tensor": lambda **k: torch.as_tensor([1.0, 2.0], **k),
    "asarray": lambda **k: torch.asarray([1.0, 2.0], **k),
    "as_tensor of numpy": lambda **k: torch.as_tensor(np.ones(2), **k),
    "scalar_tensor": lambda **k: torch.scalar_tensor(2.0, **k),
    "tril_indices": lambda **k: torch.tril_indices(2, 2, **k),
    "hann_window": lambda **k: torch.hann_window(4, **k),
    "fftfreq": lambda **k: torch.fft.fftfreq(4, **k),
}
DEVICES = {
    "no device": {},
    "None": {"device": None},
    "'cpu'": {"device": "cpu"},
    "'cpu:0'": {"device": "cpu:0"},
    "torch.device('cpu')": {"device": torch.device("cpu")},
    "'jax'": {"device": "jax"},
}


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
@pytest.mark.parametrize("factory", FACTORIES.values(), ids=FACTORIES)
def test_a_factory_gives_an_xla_tensor(jax_env, factory, device):
    with jax_env:
        made = factory(**device)
    assert isinstance(made, XLATensor2)


LEAVING = {
    "cpu()": lambda t: t.cpu(),
    "to('cpu')": lambda t: t.to("cpu"),
    "to(torch.device('cpu'))": lambda t: t.to(torch.device("cpu")),
    "to(device='cpu')": lambda t: t.to(device="cpu"),
    "to('cpu', torch.float64)": lambda t: t.to("cpu", torch.float64),
    "to('cpu', copy=True)": lambda t: t.to("cpu", copy=True),
    "new_zeros(device='cpu')": lambda t: t.new_zeros(2, device="cpu"),
    "zeros_like(device='cpu')": lambda t: torch.zeros_like(t, device="cpu"),
    "cpu() of a module": lambda t: torch.nn.Linear(2, 2).cpu().weight,
    "to('cpu') of a module": lambda t: torch.nn.Linear(2, 2).to("cpu").weight,
    "pinned memory": lambda t: torch.ones(2, pin_memory=True),
}


@pytest.mark.parametrize("leave", LEAVING.values(), ids=LEAVING)
def test_moving_to_the_cpu_leads_to_jax(jax_env, leave):
    native = torch.ones(2)
    with jax_env:
        assert isinstance(leave(torch.ones(2)), XLATensor2)
        assert isinstance(leave(native), XLATensor2)


def test_data_leaves_through_torch_numpy_and_text(jax_env):
    with jax_env:
        made = torch.arange(3)
        assert made.torch().is_cpu
        for left in (made, made.torch(), made.numpy(), np.asarray(made)):
            assert left.tolist() == [0, 1, 2]
        assert repr(torch.ones(2)) == "tensor([1., 1.], device='jax:0')"


def test_a_dtype_is_kept(jax_env):
    with jax_env:
        assert torch.ones(2, dtype=torch.float64).dtype == torch.float64
        assert torch.ones(2).to("cpu", torch.int32).dtype == torch.int32


def test_a_factory_can_require_a_gradient(jax_env):
    with jax_env:
        x = torch.ones(2, requires_grad=True)
        (x * 3).sum().backward()
    assert x.is_leaf
    assert x.grad.tolist() == [3, 3]


def test_numbers_of_a_cpu_generator_are_those_of_the_cpu(jax_env):
    expected = torch.rand(4, generator=torch.Generator().manual_seed(1))
    with jax_env:
        made = torch.rand(4, generator=torch.Generator().manual_seed(1))
    assert isinstance(made, XLATensor2)
    assert made.tolist() == expected.tolist()


def test_an_out_argument_decides_where_the_result_is(jax_env):
    out = torch.ones(2)
    with jax_env:
        torch.zeros(2, out=out)
    assert out.device.type == "cpu"
    assert out.tolist() == [0, 0]


def test_the_meta_device_is_left_alone(jax_env):
    with jax_env:
        assert torch.ones(2, device="meta").is_meta
        with torch.device("meta"):
            assert torch.ones(2).is_meta


def test_a_device_context_around_and_inside(jax_env):
    with torch.device("cpu"), jax_env:
        assert isinstance(torch.ones(2), XLATensor2)
    with jax_env, torch.device("jax"):
        assert isinstance(torch.ones(2), XLATensor2)
    assert modes() == 0


def test_a_module_is_made_and_trained_on_jax(jax_env):
    with jax_env:
        model = torch.nn.Linear(3, 1)
        optimizer = torch.optim.Adam(model.parameters())
        before = model.weight.detach().torch()
        model(torch.ones(2, 3)).sum().backward()
        optimizer.step()
        assert isinstance(model.weight, XLATensor2)
        assert not torch.equal(model.weight.detach().torch(), before)
        assert optimizer.state[model.weight]["step"].is_cpu


def test_a_data_loader_can_shuffle(jax_env):
    data = torch.utils.data.TensorDataset(torch.arange(8))
    with jax_env:
        batches = [batch for (batch,) in torch.utils.data.DataLoader(data, 4, shuffle=True)]
    assert sorted(torch.cat([batch.torch() for batch in batches]).tolist()) == list(range(8))


def test_saved_tensors_of_both_devices_are_loaded(jax_env):
    files = [io.BytesIO() for _ in range(2)]
    torch.save(torch.arange(3), files[0])
    with jax_env:
        torch.save(torch.arange(3), files[1])
        for file in files:
            file.seek(0)
            assert torch.load(file).tolist() == [0, 1, 2]


def test_deepcopy_stays_on_jax(jax_env):
    with jax_env:
        assert isinstance(copy.deepcopy(torch.ones(2)), XLATensor2)


# --- nesting, changes, errors, threads ------------------------------------------------------------


def test_it_can_be_entered_while_entered(jax_env):
    with jax_env:
        with jax_env:
            assert isinstance(torch.ones(1), XLATensor2)
        assert isinstance(torch.ones(1), XLATensor2)
    assert not isinstance(torch.ones(1), XLATensor2)
    assert modes() == 0


def test_a_change_holds_within_the_context_at_once(jax_env):
    assert not isinstance(torch.ones(1), XLATensor2)
    with jax_env:
        assert isinstance(torch.ones(1), XLATensor2)
        jax_env.config.use_torch_native_for_cpu_tensor = True
        assert not isinstance(torch.ones(1), XLATensor2)
    assert modes() == 0


def test_the_setting_is_a_bool():
    with pytest.raises(TypeError, match="True or False"):
        default_env().config.use_torch_native_for_cpu_tensor = "no"


@pytest.mark.parametrize(
    "name", ["use_torch_native_cpu_tensor", "use_torch_native_for_cpu_tensors"]
)
def test_an_unknown_setting_raises_with_the_nearest_name(name):
    config = torch_xla_lite.default_env().config
    with pytest.raises(AttributeError, match="Did you mean use_torch_native_for_cpu_tensor"):
        setattr(config, name, False)
    with pytest.raises(AttributeError, match="Did you mean use_torch_native_for_cpu_tensor"):
        getattr(config, name)
    assert config.use_torch_native_for_cpu_tensor


def test_a_setting_that_is_like_no_other_raises():
    with pytest.raises(AttributeError, match="no setting xyz"):
        torch_xla_lite.default_env().config.xyz = 1


def test_the_legacy_constructors_give_cpu_tensors(jax_env):
    with jax_env:
        assert torch.Tensor([1.0, 2.0]).is_cpu
        assert torch.FloatTensor([1.0]).is_cpu
        assert torch.tensor([1.0, 2.0]).device.type == "jax"


def test_from_numpy_shares_memory_and_as_tensor_copies(jax_env):
    source = np.zeros(2, np.float32)
    with jax_env:
        shared, copied = torch.from_numpy(source), torch.as_tensor(source)
    source[0] = 5
    assert (shared.is_cpu, copied.device.type) == (True, "jax")
    assert (shared.tolist(), copied.tolist()) == ([5, 0], [0, 0])


def test_an_exception_leaves_the_context_or_leaves_it_usable(jax_env):
    with pytest.raises(KeyError), jax_env:
        with pytest.raises(RuntimeError):
            torch.ones(2, -3)
        assert isinstance(torch.ones(1), XLATensor2)
        raise KeyError
    assert modes() == 0


def test_two_environments_may_overlap_without_nesting(jax_env):
    other = Environment()
    other.config.use_torch_native_for_cpu_tensor = False
    jax_env.__enter__()
    other.__enter__()
    jax_env.__exit__(None, None, None)
    assert isinstance(torch.ones(1), XLATensor2)
    other.__exit__(None, None, None)
    assert not isinstance(torch.ones(1), XLATensor2)
    assert modes() == 0


def test_a_mode_entered_inside_stays_on_top(jax_env):
    class Recorder(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            devices.append((kwargs or {}).get("device"))
            return func(*args, **(kwargs or {}))

    devices = []
    with jax_env, Recorder():
        assert isinstance(torch.ones(1, device="cpu"), XLATensor2)
    assert devices[0] == "cpu"


def test_a_mode_left_inside_does_not_take_the_environment_with_it():
    env = Environment()
    with env:
        with BaseTorchFunctionMode():
            env.config.use_torch_native_for_cpu_tensor = False
        assert isinstance(torch.ones(1), XLATensor2)
    assert modes() == 0


def in_a_thread(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_other_threads_are_not_affected(jax_env):
    with jax_env:
        assert not isinstance(in_a_thread(lambda: torch.ones(1)), XLATensor2)


def test_a_thread_can_enter_for_itself(jax_env):
    def work():
        with jax_env:
            return torch.ones(1)

    assert isinstance(in_a_thread(work), XLATensor2)
    assert not isinstance(torch.ones(1), XLATensor2)


def test_backward_runs_in_the_environment(jax_env):
    class MakesATensor(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * torch.tensor(2.0)

    with jax_env:
        x = torch.ones(2, requires_grad=True)
        MakesATensor.apply(x).sum().backward()
        assert x.grad.tolist() == [2, 2]


# --- globally -------------------------------------------------------------------------------------


@pytest.fixture
def default_means_jax():
    default_env().config.use_torch_native_for_cpu_tensor = False
    yield
    torch_xla_lite.disable_globally()
    default_env().config.use_torch_native_for_cpu_tensor = True


def test_enabling_twice_is_enabling_once_and_so_is_disabling(default_means_jax):
    for _ in range(2):
        torch_xla_lite.enable_globally()
        assert default_env().enabled and isinstance(torch.ones(1), XLATensor2)
    for _ in range(2):
        torch_xla_lite.disable_globally()
        assert not default_env().enabled and not isinstance(torch.ones(1), XLATensor2)
    assert modes() == 0


def test_disabling_inside_a_context_leaves_the_context_in_force(default_means_jax):
    torch_xla_lite.enable_globally()
    with default_env():
        torch_xla_lite.disable_globally()
        assert isinstance(torch.ones(1), XLATensor2)
    assert not isinstance(torch.ones(1), XLATensor2)


def test_enabled_globally_with_native_tensors_changes_no_factory():
    torch_xla_lite.enable_globally()
    try:
        assert torch.ones(1).device.type == "cpu"
        assert modes() == 0
    finally:
        torch_xla_lite.disable_globally()


def test_a_window_computed_while_compiling_is_not_made_in_the_environment(jax_env):
    with jax_env:
        window = torch.hann_window(9, device="jax").torch()
    torch.testing.assert_close(window, torch.hann_window(9))
