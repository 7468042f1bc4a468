"""What the recorder and the interpreter have to know of an op, beside its schema.

The facts of an op stand in the decorator of its lowering; those of
ops without one are in `unlowered.py`:

    @lower("aten::addmm", one_dtype="self mat1 mat2", shares="self=same", any_strides=True)

`scripts/lowering_table.py` writes them into a table for the C++ code (csrc/ops/op_table.h).
Arguments are named as in the op's schema, several with spaces between them.
"""

import dataclasses


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of an op; the defaults are those of most.

    Which kernel the device has for it:
      kernel: "recorder" although torch composes the op of others; "cpu", which runs it on copies of
        its arguments; "other", torch's or one of `composites.py` and `random_ops.py`. By default
        the recorder, and none for compositions.

    What is a constant of the graph:
      constants: the `Scalar` arguments are, instead of coming at run time. The lowering gets Python
        numbers.
      runtime_floats: these arguments of type `float` are not; the lowering gets 0-d arrays.
      negative: a negative number in these arguments is, because torch may refuse it.
      indexes: the arguments dim, index or start, end and step select a part of a tensor. The index
        comes at run time.

    What torch's CPU kernel refuses, although its meta function takes it. It then runs, and raises:
      refuses: kinds of dtypes of the first operand and of the first result, as letters of
        `numpy.dtype.kind`, b: bool, i: signed, u: unsigned, f: float, c: complex; and h: 16-bit
        float. Where a lowering takes more of the floats than the kernel, it computes in float32 and
        rounds once. Listed are the dtypes that the kernels of torch 2.13 refused of the sample
        inputs of PyTorch's op database; libraries rely on histc of integers, which other devices
        have.
      refuses_results: the same of the first result alone, to whose dtype the kernel converts.
      dtypes: kinds of dtypes that these tensors have, and l for int64: "index=l mask=b".
      elements: these tensors have some.
      numbers: limits of these numbers: "p>=0 p<=1".
      one_dtype: these tensors have one dtype.
      dtype_of_input: these parameters have the dtype of the input, or float32 beside halves.
      refused_if: the name of what is true of calls that are refused, a function of
        csrc/infer/refused_calls.cc.
      divides: argument 1 is not the number 0, for "integers" or for "all" dtypes.
      casts_numbers: the kernel casts all its numbers to the dtype of the result, and refuses those
        out of range. Of most ops torch makes tensors of some.
      shares: what these arguments may share with a tensor that the op in place or with out= writes:
        `self=same` the same elements, `self=nothing` no memory. Others may share all they want.
        None: those of pointwise ops the same elements, those of others all.

    What its results are:
      shape: the name of the rule for their shapes, a function of csrc/infer/shape_rules.cc, where
        torch has no meta function in C++.
      zeros: all zeros, as uninitialised memory is here.
      strides: the argument that has the strides of the result.

    How the interpreter runs it, if not by torch's CPU kernel alone. Names of functions:
      own_kernel: of csrc/interpreter/cpu_call.cc, where torch has no kernel.
      completed_by: of csrc/interpreter/completion.cc, which completes the results of the kernel.
      draw: of csrc/interpreter/draw.cc, which draws the numbers of the lowering.

    How the interpreter calls torch's CPU kernel:
      any_strides: the kernel reads any strides as fast as contiguous ones. It knows so of pointwise
        ops and views.
      channels_last: the kernel is as fast on tensors whose channels are the last dimension in
        memory, and its results are of this kind, too.
      dense_operand: the result depends on the strides of the first operand, or on its conjugation.
      rewrites: it only puts values into places of its first operand, so that on its own result it
        gives that result again, unless it has to accumulate.
      by_value: the result depends on nothing but values. If not, the op is compiled.
      writes_statistics: the kernel writes to running_mean and running_var, which its schema does
        not mark as written.
      kernel_needs: the name of what the kernel does not check of its operands' values, although it
        reads or writes other memory, or ends the process, if it is not so; a function of
        csrc/aten/conditions.cc.
      rounds: 16-bit kernels round "operands" of other dtypes, or those and "numbers", to 16 bits
        first. In compiled graphs only the result is rounded.
    """

    kernel: str = ""
    constants: bool = False
    runtime_floats: str = ""
    negative: str = ""
    indexes: bool = False
    refuses: str = ""
    refuses_results: str = ""
    dtypes: str = ""
    elements: str = ""
    numbers: str = ""
    one_dtype: str = ""
    dtype_of_input: str = ""
    refused_if: str = ""
    divides: str = ""
    casts_numbers: bool = False
    shares: str | None = None
    shape: str = ""
    zeros: bool = False
    strides: str = ""
    own_kernel: str = ""
    completed_by: str = ""
    draw: str = ""
    any_strides: bool = False
    channels_last: bool = False
    dense_operand: bool = False
    rewrites: bool = False
    by_value: bool = True
    writes_statistics: bool = False
    kernel_needs: str = ""
    rounds: str = ""
