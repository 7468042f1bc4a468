"""Compiled programs on disk: other processes load them, and damaged ones are replaced."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bazel.pytest_plugin import mostly_nightly
from test.python import programs
from test.python.copies import PACKAGE, copy_of_the_package
from torch_xla_lite.compiler import compilation_cache

# A random op, an ATen kernel called by XLA, a kernel of ours and a training step, so that a program
# has each kind of call in it. `report` prints the counts and the bits of a result. What comes from
# jax's cache would not be stored.
PROGRAM = """
import json, sys
import jax, torch, torch_xla_lite
jax.config.update("jax_enable_compilation_cache", False)

def report(value):
    values = value.cpu().tolist()
    metrics = torch_xla_lite.debug.metrics()
    print(json.dumps([metrics["compiles"], metrics["loads"], sorted(metrics["fallbacks"]), values]))
"""
STEPS = """
from torch_xla_lite import ops
torch.manual_seed(0)
x = torch.rand(4, 8, device="jax")
model = torch.nn.Sequential(torch.nn.Linear(8, 5), torch.nn.Dropout(0.5)).to("jax")
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    scores = model(x)
    loss = ops.softmax_cross_entropy(scores, torch.tensor([0, 1, 2, 3], device="jax"))
    (loss + torch.nn.functional.multilabel_margin_loss(
        scores.detach(), torch.tensor([[0, 1, -1, -1, -1]] * 4, device="jax"))).sum().backward()
    optimizer.step()
report(torch.cat([p.flatten() for p in model.parameters()]))
"""


def run(source: str, cache: Path, **environ: str) -> tuple:
    """(graphs compiled, graphs loaded, fallbacks, values) of a program in a process of its own,
    which was forked after torch and jax were imported."""
    return counts(programs.run(PROGRAM + source, **(variables(cache) | environ)))


def run_in_new_process(source: str, cache: Path, package: Path = PACKAGE, **environ: str) -> tuple:
    """The same in a process that starts an interpreter and imports everything."""
    environ = {"PYTHONPATH": str(package.parent), **variables(cache), **environ}
    return counts(programs.call(sys.executable, "-P", "-c", PROGRAM + source, **environ))


def variables(cache: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(cache), "TORCH_XLA_LITE_COMPILATION_CACHE": "1"}


def counts(done: "subprocess.CompletedProcess[str]") -> tuple:
    assert done.returncode == 0, done.stderr
    return tuple(json.loads(done.stdout.splitlines()[-1]))


def entries(cache: Path) -> list[Path]:
    return sorted((cache / "torch_xla_lite" / "programs").iterdir())


JAX_CALLS = """
import jax.numpy as jnp
from torch_xla_lite import call_jax
x = torch.arange(3.0, device="jax", requires_grad=True)
functions = [lambda v, scale=scale: jnp.sin(v) * scale for scale in SCALES]
table = {scale: call_jax(function, x) for scale, function in zip(SCALES, functions)}
y = (table[2.0] * table[3.0] + 1).sum()
del table
y.backward()
report(x.grad)
"""
ADD = "report(torch.arange(3., device='jax') + 0.5)"


@pytest.mark.nightly
def test_jax_functions_are_known_whatever_else_was_traced_before(tmp_path: Path):
    first = run(JAX_CALLS.replace("SCALES", "[2.0, 3.0]"), tmp_path)
    second = run(JAX_CALLS.replace("SCALES", "[7.0, 2.0, 5.0, 3.0]"), tmp_path)
    assert first[:2] == (1, 0)
    assert second == (0, 1, *first[2:])


@pytest.mark.nightly
def test_another_jax_function_of_the_same_name_is_another_program(tmp_path: Path):
    first = run(JAX_CALLS.replace("SCALES", "[2.0, 3.0]"), tmp_path)
    second = run(JAX_CALLS.replace("SCALES", "[2.0, 3.0]").replace("sin", "cos"), tmp_path)
    assert second[:2] == (1, 0)
    assert second[3] != first[3]


@pytest.fixture(scope="module")
def added(tmp_path_factory) -> Path:
    """A cache with the program of ADD."""
    cache = tmp_path_factory.mktemp("added")
    assert run(ADD, cache) == (1, 0, [], [0.5, 1.5, 2.5])
    return cache


@pytest.fixture
def cache(added: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(added, tmp_path / "cache"))


@pytest.mark.nightly
def test_a_second_process_compiles_nothing_and_computes_the_same_bits(tmp_path: Path):
    compiled, loaded, fallbacks, values = run_in_new_process(STEPS, tmp_path)
    assert compiled >= 1
    assert loaded == 0
    assert fallbacks != []
    assert run_in_new_process(STEPS, tmp_path) == (0, compiled, fallbacks, values)


def test_it_is_on_without_a_variable(tmp_path: Path):
    assert run(ADD, tmp_path, TORCH_XLA_LITE_COMPILATION_CACHE="") == (1, 0, [], [0.5, 1.5, 2.5])
    assert len(entries(tmp_path)) == 1


WITHOUT_TRACING = """
from torch_xla_lite.compiler import tracing
def refuse(*arguments, **options):
    raise RuntimeError("a graph is traced")
tracing.lower_graph = refuse
"""


def test_a_program_on_disk_needs_no_tracing(cache: Path, tmp_path: Path):
    assert run(WITHOUT_TRACING + ADD, cache) == (0, 1, [], [0.5, 1.5, 2.5])
    with pytest.raises(AssertionError, match="a graph is traced"):
        run(WITHOUT_TRACING + ADD, tmp_path / "empty")


# LAPACK's kernels are bound when jax lowers the first of them, which a loaded program does not do.
LINALG = """
x = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
x = (x @ x.T + torch.eye(4)).to("jax")
results = [torch.linalg.inv(x), torch.linalg.cholesky(x), torch.linalg.eigvalsh(x),
           torch.linalg.svdvals(x), torch.linalg.qr(x).R, torch.fft.fft(x).real,
           torch.topk(x, 2).values, torch.sort(x).values, torch.linalg.det(x)]
report(torch.cat([result.flatten() for result in results]))
"""


@pytest.mark.nightly
def test_programs_with_calls_of_lapack_are_loaded(tmp_path: Path):
    compiled, _, fallbacks, values = run_in_new_process(LINALG, tmp_path)
    assert run_in_new_process(LINALG, tmp_path) == (0, compiled, fallbacks, values)


CONVOLUTION = """
x, weight = (torch.ones(*shape, device="jax") for shape in ((1, 2, 4), (2, 1, 3)))
report(torch.conv1d(x, weight, groups=2))
"""


@pytest.mark.nightly
def test_programs_with_kernels_of_torch_that_a_lowering_calls_are_loaded(tmp_path: Path):
    assert run(CONVOLUTION, tmp_path) == (1, 0, [], [[[3, 3], [3, 3]]])
    assert run(CONVOLUTION, tmp_path) == (0, 1, [], [[[3, 3], [3, 3]]])


CALLBACK = """
import jax
@torch.library.custom_op("cache_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return 2 * x

twice.register_fake(torch.empty_like)

@torch_xla_lite.register_lowering("cache_test::twice")
def _(x):
    return jax.pure_callback(lambda values: 2 * values, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

report(twice(torch.arange(3., device='jax')))
"""


@pytest.mark.nightly
def test_a_graph_with_a_callback_is_compiled_in_each_process(tmp_path: Path):
    for _ in range(2):
        assert run(CALLBACK, tmp_path) == (1, 0, [], [0, 2, 4])


@pytest.mark.nightly
def test_two_processes_at_once_leave_entries_that_work(tmp_path: Path):
    with ThreadPoolExecutor() as pool:
        first, second = pool.map(lambda _: run_in_new_process(ADD, tmp_path), range(2))
    assert first[3] == second[3] == [0.5, 1.5, 2.5]
    assert run(ADD, tmp_path)[:2] == (0, 1)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def exchange(path: Path) -> None:
    """Puts a valid entry of another graph in the place of this one."""
    run("report(torch.arange(3., device='jax') * 0.5)", path.parents[2])
    (other,) = set(entries(path.parents[2])) - {path}
    other.replace(path)


def replace_by(make: Callable[[Path], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        path.unlink()
        make(path)

    return damage


DAMAGES = {
    "flip": flip,
    "truncate": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "empty": lambda path: path.write_bytes(b""),
    "foreign": lambda path: path.write_bytes(
        compilation_cache._checksum(path.name, b"{}\n") + b"{}\n"
    ),
    "other": exchange,
    "pipe": replace_by(os.mkfifo),
    "folder": replace_by(lambda path: (path / "inside").mkdir(parents=True)),
}


@pytest.mark.few_daily(1)
@pytest.mark.parametrize("kind", mostly_nightly(DAMAGES, ["flip", "other"]))
def test_a_damaged_entry_is_ignored_and_replaced(kind: str, cache: Path):
    (entry,) = entries(cache)
    DAMAGES[kind](entry)
    assert run(ADD, cache) == (1, 0, [], [0.5, 1.5, 2.5])
    content = entry.read_bytes()
    size = compilation_cache._DIGEST
    assert content[:size] == compilation_cache._checksum(entry.name, content[size:])
    assert len(content) > 1000


REMOVED = """
import shutil
from torch_xla_lite.compiler import compilation_cache
(torch.arange(3.0, device="jax") * 0.5).tolist()
shutil.rmtree(compilation_cache._folder())
report(torch.arange(5.0, device="jax") + 1)
"""


@pytest.mark.nightly
def test_a_folder_that_is_removed_while_a_program_runs_is_made_again(tmp_path: Path):
    run(REMOVED, tmp_path)
    assert len(entries(tmp_path)) == 1


REGISTERED = """
@torch.library.custom_op("mine::op", mutates_args=())
def op(x: torch.Tensor) -> torch.Tensor: return x.clone()
op.register_fake(torch.empty_like)
torch_xla_lite.register_lowering("mine::op")(lambda x: x + {number})
report(op(torch.arange(2., device="jax")))
"""


@pytest.mark.nightly
def test_a_registered_lowering_that_changed_is_compiled_again(tmp_path: Path):
    assert run(REGISTERED.format(number=1), tmp_path) == (1, 0, [], [1, 2])
    assert run(REGISTERED.format(number=2), tmp_path) == (1, 0, [], [2, 3])
    assert run(REGISTERED.format(number=1), tmp_path) == (0, 1, [], [1, 2])


@pytest.mark.nightly
def test_another_op_with_the_same_lowering_has_a_program_of_its_own(tmp_path: Path):
    # Errors and checks of a program name its ops.
    program = REGISTERED.format(number=1)
    assert run(program, tmp_path)[:2] == (1, 0)
    assert run(program.replace("mine::op", "mine::other"), tmp_path)[:2] == (1, 0)


SETTINGS: dict[str, tuple[str, dict[str, str]]] = {
    "default dtype": ("torch.set_default_dtype(torch.float64)\n", {}),
    "jax": ("jax.config.update('jax_default_matmul_precision', 'highest')\n", {}),
    "XLA_FLAGS": ("", {"XLA_FLAGS": "--xla_cpu_enable_fast_math=false"}),
}


@pytest.mark.nightly
@pytest.mark.parametrize("setting", mostly_nightly(SETTINGS, ["XLA_FLAGS"]))
def test_settings_that_change_the_code_are_in_the_key(setting: str, cache: Path):
    before, environ = SETTINGS[setting]
    assert run_in_new_process(before + ADD, cache, **environ)[:2] == (1, 0)


VERSIONS = {
    "torch": "import torch; torch.__version__ = '2.13.1'",
    "build of torch": "import torch; torch.version.git_version = '0' * 40",
    "jax": "import jax; jax.__version__ = '0.10.3'",
    "jaxlib": "import jaxlib; jaxlib.__version__ = '0.10.3'",
    "numpy": "import numpy; numpy.__version__ = '9.9.9'",
    "variable of this package": "import os; os.environ['TORCH_XLA_LITE_NEW_SETTING'] = '1'",
}
if len(processors := os.sched_getaffinity(0)) > 1:
    VERSIONS["processors"] = f"import os; os.sched_setaffinity(0, {{{min(processors)}}})"


@pytest.mark.parametrize("version", mostly_nightly(VERSIONS, ["torch"]))
def test_versions_variables_and_processors_are_in_the_key(version: str, cache: Path):
    assert run(f"{VERSIONS[version]}\n{ADD}", cache)[:2] == (1, 0)


# Another model, another feature; what Linux measures at the moment decides nothing.
PROCESSORS = {
    "the same": ("cpu MHz\t\t: 2", "cpu MHz\t\t: 9", (0, 1)),
    "model": ("model name\t:", "model name\t: another", (1, 0)),
    "feature": ("flags\t\t:", "flags\t\t: another", (1, 0)),
}


@pytest.mark.nightly
@pytest.mark.parametrize("change", mostly_nightly(PROCESSORS, ["feature"]))
def test_the_model_and_the_features_of_the_processor_are_in_the_key(change: str, tmp_path: Path):
    old, new, expected = PROCESSORS[change]
    file = tmp_path / "cpuinfo"
    program = f"""
from pathlib import Path
from torch_xla_lite.compiler import compilation_cache
compilation_cache._PROCESSORS = Path({str(file)!r})
{ADD}
"""
    description = "model name\t: A\nflags\t\t: sse\ncpu MHz\t\t: 2000\n"
    file.write_text(description)
    assert run(program, tmp_path)[:2] == (1, 0)
    file.write_text(description.replace(old, new))
    assert run(program, tmp_path)[:2] == expected


@pytest.mark.nightly
def test_a_changed_lowering_of_this_package_is_compiled_again(tmp_path: Path):
    package = copy_of_the_package(tmp_path)
    run_in_new_process(ADD, tmp_path, package)
    with (package / "lowering" / "binary.py").open("a") as file:
        file.write("# Changed.\n")
    assert run_in_new_process(ADD, tmp_path, package)[:2] == (1, 0)


@pytest.mark.nightly
def test_a_library_of_this_package_that_was_built_again_is_in_the_key(tmp_path: Path):
    package = copy_of_the_package(tmp_path)
    run_in_new_process(ADD, tmp_path, package)
    assert run_in_new_process(ADD, tmp_path, package)[:2] == (0, 1)
    library = package / "lib" / "libtorch_xla_lite.so"
    # A file of its own, with a byte that the loader does not read.
    content = library.read_bytes()
    library.unlink()
    library.write_bytes(content + b"\0")
    assert run_in_new_process(ADD, tmp_path, package)[:2] == (1, 0)


# Users of jax set these by variables that jax reads when it is imported.
CACHE_OF_JAX = """
jax.config.update("jax_enable_compilation_cache", True)
jax.config.update("jax_compilation_cache_dir", {folder!r})
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
"""


@pytest.mark.nightly
@pytest.mark.parametrize("ours_is_warm", [False, True])
@pytest.mark.parametrize("cache_of_jax_is_warm", [False, True])
def test_each_process_computes_the_same_with_the_cache_of_jax(
    cache_of_jax_is_warm: bool, ours_is_warm: bool, tmp_path: Path
):
    of_jax, ours = tmp_path / "jax", tmp_path / "ours"
    program = CACHE_OF_JAX.format(folder=str(of_jax)) + ADD
    if ours_is_warm:
        run(program, ours)
        shutil.rmtree(of_jax)
    if cache_of_jax_is_warm:
        run(program, tmp_path / "another")
        assert list(of_jax.iterdir())
    # What jax has loaded cannot be stored, so it is loaded from there each time.
    stored = ours_is_warm or not cache_of_jax_is_warm
    first = (0, 1) if ours_is_warm else (1, 0)
    for expected in (first, (0, 1) if stored else (1, 0), (0, 1) if stored else (1, 0)):
        assert run(program, ours) == (*expected, [], [0.5, 1.5, 2.5])


@pytest.mark.nightly
def test_it_can_be_switched_off(tmp_path: Path):
    assert run(ADD, tmp_path, TORCH_XLA_LITE_COMPILATION_CACHE="0")[:2] == (1, 0)
    assert not (tmp_path / "torch_xla_lite").exists()


@pytest.mark.nightly
def test_a_folder_that_cannot_be_made_hinders_nothing(tmp_path: Path):
    (tmp_path / "torch_xla_lite").touch()
    assert run(ADD, tmp_path) == (1, 0, [], [0.5, 1.5, 2.5])


def test_only_the_owner_may_read_the_folder(tmp_path: Path):
    folder = tmp_path / "torch_xla_lite" / "programs"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    run(ADD, tmp_path)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.nightly
def test_a_folder_that_is_not_private_is_named_once_and_not_used(cache: Path):
    folder = cache / "torch_xla_lite" / "programs"
    folder.chmod(0o770)
    done = programs.run(PROGRAM + MANY_GRAPHS.replace("*sizes", "1, 4"), **variables(cache))
    assert counts(done)[:2] == (3, 0)
    assert done.stderr == (
        f"torch_xla_lite: compiled programs are not kept: other users may write to {folder}; "
        f"run  chmod go-w {folder}\n"
    )
    assert len(entries(cache)) == 1


@pytest.mark.nightly
def test_an_entry_that_another_user_may_write_is_replaced(cache: Path):
    (entry,) = entries(cache)
    entry.chmod(0o622)
    assert run(ADD, cache)[:2] == (1, 0)
    assert entry.stat().st_mode & 0o777 == 0o600
    assert run(ADD, cache)[:2] == (0, 1)


def test_the_entries_unused_for_longest_are_removed_first(tmp_path: Path):
    for number in range(4):
        path = tmp_path / str(number)
        path.write_bytes(bytes(10))
        os.utime(path, (number, number))
    os.utime(tmp_path / "0")
    (tmp_path / "a folder").mkdir()
    os.utime(tmp_path / "a folder", (0, 0))
    folder = os.open(tmp_path, os.O_RDONLY)
    compilation_cache._remove_oldest(folder, limit=25)
    os.close(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "3", "a folder"]


MANY_GRAPHS = """
import warnings
warnings.simplefilter("error", torch_xla_lite.compiler.new_graphs.RecompilationWarning)
for size in range(*sizes):
    x = torch.ones(size, device="jax").cosh().cpu()
report(x[:1].round())
"""


@pytest.mark.nightly
def test_only_the_tenth_graph_that_is_compiled_warns_not_those_that_are_loaded(tmp_path):
    def run_sizes(first, after):
        return run(f"sizes = {first}, {after}" + MANY_GRAPHS, tmp_path)

    assert run_sizes(1, 10) == (9, 0, [], [2])
    assert run_sizes(11, 20) == (9, 0, [], [2])
    assert run_sizes(1, 20) == (1, 18, [], [2])
    # Nineteen are loaded, and nine are compiled.
    assert run_sizes(1, 29) == (9, 19, [], [2])
    with pytest.raises(AssertionError, match="compiled its tenth graph here: size of aten::ones"):
        run_sizes(1, 39)


MANY = """
from torch_xla_lite.compiler import compilation_cache
folder, scans = compilation_cache._folder(), []
def note(event, arguments):
    if event == "os.scandir" and isinstance(arguments[0], int):
        scans.append(arguments)
sys.addaudithook(note)
for number in range(12):
    (torch.arange(number + 1.0, device="jax") + 1).tolist()
sizes = [path.stat().st_size for path in folder.iterdir()]
print(json.dumps([len(scans), sum(sizes), len(sizes)]))
"""


@pytest.mark.nightly
def test_a_process_reads_the_sizes_of_all_files_once(tmp_path: Path):
    scans, _, programs = run(MANY, tmp_path)
    assert (scans, programs) == (1, 12)


@pytest.mark.nightly
def test_a_process_that_stores_much_keeps_the_limit(tmp_path: Path):
    _, size, _ = run(MANY, tmp_path)
    limit = size // 3
    setting = f"from torch_xla_lite.startup import caches\ncaches.PROGRAMS_LIMIT = {limit}\n"
    _, size, programs = run(setting + MANY.replace("+ 1)", "* 2)"), tmp_path)
    assert size <= limit
    assert programs >= 2
