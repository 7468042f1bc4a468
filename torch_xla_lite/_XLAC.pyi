"""The compiled module: the part of the bridge that Python uses; see csrc/python/module.cc."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, SupportsFloat, SupportsIndex, SupportsInt, TypeVar

import jax
import torch

from .debug import Metrics

_T = TypeVar("_T")

# --- the compiler (torch_xla_lite/compiler.py) ---

def set_compiler(compiler: object) -> None:
    """Connects the compiler: `compiler.Compiler`."""

def register_lowering(op: str, needs_constants: bool) -> None:
    """Adds the lowering of an op of another library."""

def use_lowering(op: str) -> None:
    """Runs the lowering of an op in interpreted graphs, too."""

def note_fallback(op: str) -> None:
    """Counts an op that calls a kernel of ATen inside a graph."""

def set_in_kernel(function: SupportsInt | SupportsIndex) -> None:
    """Address of a C function that says whether a kernel of ATen runs on the calling thread."""

def aten_call(op: str, words: Sequence[SupportsInt | SupportsIndex], defined: str) -> Callable:
    """A call of ATen's CPU kernel for callbacks of XLA (csrc/ops/aten_call.h): a function of
    operands, scalars and the tensors that it writes its results into, all lists of tensors. It
    raises what the kernel raises, with torch's classes of errors."""

# --- running ---

def set_compile_when(value: str) -> str:
    """Sets when a graph is compiled, a value of TORCH_XLA_LITE_COMPILE (compiler.py). Returns the
    one before."""

def set_placement_of_uploads(placement_of: Callable[[list[int]], int] | None) -> None:
    """Sets where tensors go that the program copies to the device, by their dimensions."""

def set_is_compiler_thread() -> None:
    """Says that the calling thread compiles in the background: there pending tensors cannot be
    read, as in all lowerings."""

def use_in_this_process() -> bool:
    """Says that this process, which was forked, may use the device: XLA had not started. False if
    it may not, because another thread ran a graph."""

def set_pending_limit(limit: SupportsInt | SupportsIndex) -> None:
    """Sets how many pending ops start a graph that nothing else has started; 0: no number."""

def sync() -> None:
    """Runs all ops that this thread recorded as one graph."""

def synchronize() -> None:
    """Runs all recorded ops of all threads and waits for the results."""

def pending_graph() -> tuple[list, list]:
    """Steps and roots of the graph that sync() would run, as the compiler gets them."""

def captured_graph() -> tuple:
    """The pending graph with all that it runs on: steps and roots as in pending_graph(), the jax
    arrays of its leaves, and the bits of its runtime scalars."""

def abandon_pending() -> bool:
    """Leaves what the calling thread has recorded out of all syncs: a tensor of it is computed, or
    fails, when it is read or needed. Gives back what was kept by `keep_overwritten`; returns
    whether there was any."""

def keep_overwritten() -> None:
    """Keeps values of tensors that the calling thread overwrites from now on, but for those that it
    has recorded itself."""

def refuse_reads(refuses: bool) -> bool:
    """Whether the calling thread gets an error, and starts no graph, where a value is needed that
    is not computed. Returns whether it got one since this was set last."""

def uninterrupted(function: Callable[[], _T]) -> _T:
    """Calls a function; Ctrl-C that comes meanwhile is raised afterwards."""

def pending_costs() -> tuple[float, float, float, float]:
    """Microseconds of one core that this graph takes by the model of costs: one interpreted run,
    its compilation, loading it from disk, and what a run of the compiled graph takes at least."""

def costs_so_far() -> tuple[float, float]:
    """Microseconds of one core that interpreting and compiling graphs has taken by the model of
    costs since clear_cache()."""

def pending_sizes() -> list[tuple[str, float, float, float, float]]:
    """What the costs of its calls depend on: (op, calls, elements of operands, elements of results,
    multiplications) of each."""

def set_costs(
    ops: Mapping[str, Annotated[Sequence[SupportsFloat | SupportsIndex], "FixedSize(9)"]],
    graph: Annotated[Sequence[SupportsFloat | SupportsIndex], "FixedSize(7)"],
) -> None:
    """Sets the model of costs, in microseconds: for each op (call, element of an operand, element
    of a result, multiplication; the same in a compiled graph; compilation of a call), and for each
    graph (compilation, and for each leaf and root; an execution, and for each leaf and root;
    loading, and in parts of the compilation; the start of the compiler)."""

def interpreted_graphs() -> list[tuple[int | None, str, int, int, float]]:
    """The graphs that were interpreted: (structure, line of the program, ops, runs, seconds of the
    runs). The last one, without a structure, has the runs of those that are forgotten."""

def cost_accounts() -> dict[int, tuple[float, float, bool, float, int]]:
    """Of each graph that was to be interpreted or compiled, by its structure: what its interpreted
    runs have cost and what compiling it will cost, in microseconds of the model; whether that makes
    its runs faster; the part of the first that earlier processes had, and how many they were."""

def executions() -> list[tuple[int, float]]:
    """How often each executable has run, and the seconds of that, by its number (new_graphs.py).
    Those that were compiled in the background and not used yet may be missing at the end."""

def set_memory_info(memory_info: Callable[[], tuple[int, int]]) -> None:
    """Sets the function that returns the free and total bytes of the device."""

def clear_cache() -> None:
    """Removes all compiled graphs and operations from the caches."""

# --- tensors ---

def to_jax(tensor: torch.Tensor) -> jax.Array:
    """The jax.Array behind a tensor on jax. Raises TypeError for other tensors."""

def data_ptr(tensor: torch.Tensor) -> int:
    """The address that stands for the first element of a tensor on jax. No memory is there."""

def stamp_new(number: SupportsInt | SupportsIndex) -> None:
    """Gives a number to the storages that the calling thread makes from now on; 0: none."""

def stamp_of(tensor: torch.Tensor) -> int:
    """The number of the storage of a tensor; 0 for tensors without one on jax."""

def set_stamp_of(tensor: torch.Tensor, number: SupportsInt | SupportsIndex) -> None:
    """Gives another number to it."""

def is_conjugate_view(tensor: torch.Tensor) -> bool:
    """Whether a tensor on jax shows its storage conjugated or negated."""

def last_pending() -> torch.Tensor | None:
    """The value that the calling thread recorded last of those that it holds, if it is pending."""

def claim_storage(claims: bool) -> None:
    """Whether tensors on jax tell torch's C++ code in this thread that they have a storage."""

def claims_storage() -> bool:
    """Whether they do."""

def from_jax(array: jax.Array, placement: SupportsInt | SupportsIndex = 0) -> torch.Tensor:
    """A tensor on jax with the data of an array, which is in a place (placements.py), without a
    copy."""

def place(tensor: torch.Tensor, placement: SupportsInt | SupportsIndex) -> None:
    """Moves the data of a tensor and of all its views to another place."""

def keep_at(tensor: torch.Tensor, placement: SupportsInt | SupportsIndex) -> None:
    """Says where a tensor that is not computed yet is to be; does nothing to others."""

def placement_of(tensor: torch.Tensor) -> int | None:
    """Where the data of a tensor is, or was before what is pending now; None if it never was."""

def swap_tensors(a: torch.Tensor, b: torch.Tensor) -> None:
    """Exchanges data, layout and autograd of two tensors; their hooks and attributes stay."""

def is_pending(tensor: torch.Tensor) -> bool:
    """Whether a tensor on jax was recorded and not computed yet."""

# --- random numbers ---

def manual_seed(seed: SupportsInt | SupportsIndex) -> None: ...
def initial_seed() -> int: ...
def seed() -> int: ...
def get_rng_state() -> tuple[int, int]:
    """Seed and offset."""

def set_rng_state(
    seed: SupportsInt | SupportsIndex, offset: SupportsInt | SupportsIndex
) -> None: ...

# --- counts, and the lines that recorded ops (torch_xla_lite/debug.py) ---

def metrics() -> Metrics: ...
def reset_metrics() -> None: ...
def set_ir_debug(
    describe: Callable[[tuple[int, int] | None, tuple[int, int] | None], str] | None,
) -> None:
    """What says for each op where it is recorded (debug/recorded_lines.py)."""
