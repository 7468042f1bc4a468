"""Linear algebra: factorisations, solvers, determinants.

XLA calls LAPACK on the CPU and similar libraries on GPUs. These report failure by NaN, so the
output `info` is computed from the result.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from torch.linalg import LinAlgError

from torch_xla_lite.lowering.base import target
from torch_xla_lite.lowering.base.checks import check
from torch_xla_lite.lowering.base.promotion import canonical_dim, convert, is_complex, opmath
from torch_xla_lite.lowering.base.registry import Unsupported, lower


def _adjoint(x: jax.Array) -> jax.Array:
    swapped = jnp.swapaxes(x, -1, -2)
    return lax.conj(swapped) if is_complex(x.dtype) else swapped


def _check_pivots(pivots: jax.Array, size: int) -> None:
    bad = jnp.any((pivots < 1) | (pivots > size))
    message = f"the pivots of an LU factorization must be in [1, {size}]"
    check(bad, message, RuntimeError)


# Cholesky.


@lower("aten::linalg_cholesky_ex", refuses="biuh")
def linalg_cholesky_ex(
    self: jax.Array, *, upper: bool = False, check_errors: bool = False
) -> tuple[jax.Array, jax.Array]:
    a = _adjoint(self) if upper else self
    factor = lax.linalg.cholesky(a, symmetrize_input=False)
    failed = ~jnp.all(jnp.isfinite(factor), axis=(-2, -1))
    # XLA says that a matrix is not positive-definite, but not where.
    info = lax.cond(
        jnp.any(failed), lambda: _failing_minor(a), lambda: jnp.zeros_like(failed, "i4")
    )
    return _adjoint(factor) if upper else factor, lax.select(failed, info, jnp.zeros_like(info))


def _failing_minor(a: jax.Array) -> jax.Array:
    """The orders of the first leading minors of `a`, `[..., n, n]`, that are not positive. At least
    one is not in each matrix. Bisection: beyond a smaller minor, the matrix becomes the identity.
    """
    size = a.shape[-1]

    def halve(_: int, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        positive, failing = bounds
        order = (positive + failing) // 2
        inside = lax.iota(np.int32, size) < order[..., None]
        minor = jnp.where(
            inside[..., :, None] & inside[..., None, :], a, jnp.eye(size, dtype=a.dtype)
        )
        factor = lax.linalg.cholesky(minor, symmetrize_input=False)
        failed = ~jnp.all(jnp.isfinite(factor), axis=(-2, -1))
        return jnp.where(failed, positive, order), jnp.where(failed, order, failing)

    bounds = (jnp.zeros(a.shape[:-2], "i4"), jnp.full(a.shape[:-2], size, "i4"))
    return lax.fori_loop(0, size.bit_length(), halve, bounds)[1]


@lower("aten::cholesky", refuses="biuh")
def cholesky(self: jax.Array, upper: bool = False) -> jax.Array:
    if not self.size:  # Whose matrices need not be square.
        return self
    factor, info = linalg_cholesky_ex(self, upper=upper)
    message = "cholesky: the input is not positive-definite"
    check(jnp.any(info != 0), message, LinAlgError)
    return factor


@lower("aten::cholesky_solve", refuses="biu")
@lower("aten::_cholesky_solve_helper")
def cholesky_solve(self: jax.Array, input2: jax.Array, upper: bool = False) -> jax.Array:
    batch = jnp.broadcast_shapes(self.shape[:-2], input2.shape[:-2])
    b = jnp.broadcast_to(self, (*batch, *self.shape[-2:]))
    factor = jnp.broadcast_to(input2, (*batch, *input2.shape[-2:]))
    factor = _adjoint(factor) if upper else factor
    half = _solve_triangular(factor, b, lower_half=True)
    return _solve_triangular(factor, half, lower_half=True, adjoint=True)


@lower("aten::cholesky_inverse", refuses="biu")
def cholesky_inverse(self: jax.Array, upper: bool = False) -> jax.Array:
    is_zero = jnp.diagonal(self, axis1=-2, axis2=-1) == 0
    message = "cholesky_inverse: an element of the diagonal is zero"
    check(jnp.any(is_zero), message, LinAlgError)
    identity = jnp.broadcast_to(jnp.eye(self.shape[-1], dtype=self.dtype), self.shape)
    return cholesky_solve(identity, self, upper)


# Triangular systems.


def _solve_triangular(
    a: jax.Array,
    b: jax.Array,
    *,
    lower_half: bool,
    left: bool = True,
    adjoint: bool = False,
    unit: bool = False,
) -> jax.Array:
    batch = jnp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = jnp.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = jnp.broadcast_to(b, (*batch, *b.shape[-2:]))
    return lax.linalg.triangular_solve(
        a,
        b,
        left_side=left,
        lower=lower_half,
        transpose_a=adjoint,
        conjugate_a=adjoint,
        unit_diagonal=unit,
    )


@lower("aten::linalg_solve_triangular", refuses="biu", shares="B=same")
def linalg_solve_triangular(
    self: jax.Array, B: jax.Array, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> jax.Array:
    # As the CPU's kernel does with right-hand sides of another dtype.
    rhs = convert(B, self.dtype)
    return _solve_triangular(self, rhs, lower_half=not upper, left=left, unit=unitriangular)


@lower("aten::triangular_solve", refuses="biu")
def triangular_solve(
    self: jax.Array,
    A: jax.Array,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    outs,
) -> tuple[jax.Array, jax.Array]:
    a = jnp.swapaxes(A, -1, -2) if transpose else A
    half = upper if transpose else not upper
    solution = _solve_triangular(a, self, lower_half=half, unit=unitriangular)
    return solution, jnp.broadcast_to(A, outs[1].shape)


# LU.


def _lu(a: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Packed factors, torch's 1-based pivots, and the row permutation."""
    packed, pivots, permutation = lax.linalg.lu(a)
    return _with_nans(packed), pivots + 1, permutation


def _with_nans(packed: jax.Array) -> jax.Array:
    """The factors, where what was computed from a pivot that is NaN is NaN, too: the rows below
    it, from its column on. LAPACK's factorisation may leave zeros in them."""
    pivot = jnp.diagonal(packed, axis1=-2, axis2=-1)
    if pivot.shape[-1] == 0:
        return packed
    rows, columns = packed.shape[-2:]
    # Whether one of the first pivots is NaN, up to the one of the column, or of the row above.
    found = jnp.concatenate([jnp.zeros_like(pivot[..., :1], bool), pivot != pivot], axis=-1)
    found = lax.cummax(found.astype(np.int8), axis=found.ndim - 1)
    last = jnp.minimum(lax.iota(np.int32, rows)[:, None], lax.iota(np.int32, columns) + 1)
    nan = complex(np.nan, np.nan) if is_complex(packed.dtype) else np.nan
    return jnp.where(found[..., last] != 0, nan, packed)


def _zero_pivot(packed: jax.Array) -> jax.Array:
    """LAPACK's info: the 1-based index of the first zero on U's diagonal, or 0."""
    zero = jnp.diagonal(packed, axis1=-2, axis2=-1) == 0
    if zero.shape[-1] == 0:
        return jnp.zeros(zero.shape[:-1], np.int32)
    return jnp.where(zero.any(-1), jnp.argmax(zero, axis=-1) + 1, 0).astype(np.int32)


def _unpacked(packed: jax.Array) -> tuple[jax.Array, jax.Array]:
    rows, columns = packed.shape[-2:]
    rank = min(rows, columns)
    low = jnp.tril(packed[..., :, :rank], -1) + jnp.eye(rows, rank, dtype=packed.dtype)
    return low, jnp.triu(packed[..., :rank, :])


def _permutation_matrix(permutation: jax.Array, dtype: np.dtype) -> jax.Array:
    """P with A = P L U: column i has its 1 in row permutation[i]."""
    size = permutation.shape[-1]
    return jnp.swapaxes(jax.nn.one_hot(permutation, size, dtype=dtype), -1, -2)


@lower("aten::linalg_lu_factor_ex", refuses="biuh")
def linalg_lu_factor_ex(
    A: jax.Array, *, pivot: bool = True, check_errors: bool = False
) -> tuple[jax.Array, jax.Array, jax.Array]:
    if not pivot:
        raise Unsupported("LU without pivots")
    packed, pivots, _ = _lu(A)
    return packed, pivots, _zero_pivot(packed)


@lower("aten::linalg_lu", refuses="biu")
def linalg_lu(A: jax.Array, *, pivot: bool = True) -> tuple[jax.Array, jax.Array, jax.Array]:
    if not pivot:
        raise Unsupported("LU without pivots")
    packed, _, permutation = _lu(opmath(A))
    return _permutation_matrix(permutation, A.dtype), *_unpacked(packed)


@lower("aten::lu_unpack")
def lu_unpack(
    LU_data: jax.Array,
    LU_pivots: jax.Array,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    outs,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    empty = [lax.full(out.shape, 0, out.dtype) for out in outs]
    low, up = _unpacked(LU_data) if unpack_data else empty[1:]
    if not unpack_pivots:
        return empty[0], low, up
    _check_pivots(LU_pivots, LU_data.shape[-2])
    permutation = lax.linalg.lu_pivots_to_permutation(LU_pivots - 1, LU_data.shape[-2])
    return _permutation_matrix(permutation, LU_data.dtype), low, up


@lower("aten::linalg_lu_solve")
def linalg_lu_solve(
    LU: jax.Array, pivots: jax.Array, B: jax.Array, *, left: bool = True, adjoint: bool = False
) -> jax.Array:
    if not left:
        turned = linalg_lu_solve(LU, pivots, _adjoint(B), adjoint=not adjoint)
        return _adjoint(turned)
    batch = jnp.broadcast_shapes(LU.shape[:-2], B.shape[:-2])
    size = LU.shape[-1]
    _check_pivots(pivots, size)
    packed = jnp.broadcast_to(LU, (*batch, size, size))
    pivots = jnp.broadcast_to(pivots, (*batch, size))
    permutation = lax.linalg.lu_pivots_to_permutation(pivots - 1, size)
    b = jnp.broadcast_to(B, (*batch, *B.shape[-2:]))
    if adjoint:
        half = _solve_triangular(packed, b, lower_half=False, adjoint=True)
        whole = _solve_triangular(packed, half, lower_half=True, adjoint=True, unit=True)
        return jnp.take_along_axis(whole, jnp.argsort(permutation, axis=-1)[..., None], axis=-2)
    permuted = jnp.take_along_axis(b, permutation[..., None], axis=-2)
    half = _solve_triangular(packed, permuted, lower_half=True, unit=True)
    return _solve_triangular(packed, half, lower_half=False)


@lower("aten::_linalg_solve_ex", refuses="biuh")
def linalg_solve_ex(
    A: jax.Array, B: jax.Array, *, left: bool = True, check_errors: bool = False, outs
) -> tuple[jax.Array, ...]:
    packed, pivots, _ = _lu(A)
    # As in torch, [..., n] with a matrix [..., n, n] is a batch of vectors.
    vector = B.ndim == 1 or (B.ndim == A.ndim - 1 and B.shape == A.shape[:-1])
    b = B[..., None] if vector else B
    solved = linalg_lu_solve(packed, pivots, b, left=left)
    return solved[..., 0] if vector else solved, packed, pivots, _zero_pivot(packed)


@lower("aten::linalg_inv_ex", refuses="biuh")
def linalg_inv_ex(A: jax.Array, *, check_errors: bool = False) -> tuple[jax.Array, jax.Array]:
    packed, pivots, _ = _lu(A)
    identity = jnp.broadcast_to(jnp.eye(A.shape[-1], dtype=A.dtype), A.shape)
    return linalg_lu_solve(packed, pivots, identity), _zero_pivot(packed)


def _determinant_lu(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    # Of the transpose, as torch does for contiguous real matrices: its backward formulas depend on
    # it.
    packed, pivots, _ = _lu(a if is_complex(a.dtype) else jnp.swapaxes(a, -1, -2))
    return packed, pivots


def _swaps_sign(pivots: jax.Array, dtype: np.dtype) -> jax.Array:
    moved = pivots != jnp.arange(1, pivots.shape[-1] + 1)
    return (1 - 2 * (moved.sum(-1) % 2)).astype(dtype)


@lower("aten::_linalg_det", refuses="biuh")
def linalg_det(A: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    packed, pivots = _determinant_lu(A)
    diagonal = jnp.diagonal(packed, axis1=-2, axis2=-1)
    return jnp.prod(diagonal, axis=-1) * _swaps_sign(pivots, A.dtype), packed, pivots


@lower("aten::_linalg_slogdet", refuses="biuh")
def linalg_slogdet(A: jax.Array) -> tuple[jax.Array, ...]:
    packed, pivots = _determinant_lu(A)
    diagonal = jnp.diagonal(packed, axis1=-2, axis2=-1)
    signs = jnp.sign(diagonal)
    if not is_complex(A.dtype):
        signs = jnp.where(diagonal != diagonal, 0, signs)  # As torch.sign has it.
    sign = jnp.prod(signs, axis=-1) * _swaps_sign(pivots, A.dtype)
    return sign, jnp.sum(jnp.log(jnp.abs(diagonal)), axis=-1), packed, pivots


# QR, eigenvalues, singular values.


@lower("aten::linalg_qr", refuses="biuh")
def linalg_qr(A: jax.Array, mode: str = "reduced", *, outs) -> tuple[jax.Array, jax.Array]:
    if mode == "r":
        return lax.full(outs[0].shape, 0, A.dtype), jnp.linalg.qr(A, "r")
    return tuple(jnp.linalg.qr(A, mode))


@lower("aten::linalg_householder_product", refuses="biu")
def linalg_householder_product(input: jax.Array, tau: jax.Array) -> jax.Array:
    input, tau = opmath(input), opmath(tau)
    if target.is_portable():
        return _product_of_reflections(input, tau)
    return lax.linalg.householder_product(input, tau)


def _product_of_reflections(vectors: jax.Array, tau: jax.Array) -> jax.Array:
    """The same in operations that jax can differentiate: `lax.linalg` has no derivative of it."""
    rows, columns = vectors.shape[-2:]
    precision = target.product_precision(vectors.dtype)
    # A reflection has 1 on the diagonal, and nothing above it.
    vectors = jnp.tril(vectors, -1) + jnp.eye(rows, columns, dtype=vectors.dtype)

    def reflect(step: jax.Array, product: jax.Array) -> jax.Array:
        i = tau.shape[-1] - 1 - step
        vector = jnp.take(vectors, i, axis=-1)
        factor = jnp.take(tau, i, axis=-1)[..., None, None]
        along = jnp.einsum("...m,...mn->...n", vector.conj(), product, precision=precision)
        return product - factor * vector[..., :, None] * along[..., None, :]

    start = jnp.broadcast_to(jnp.eye(rows, columns, dtype=vectors.dtype), vectors.shape)
    if tau.shape[-1] == 0:  # There is no reflection to trace.
        return start
    return lax.fori_loop(0, tau.shape[-1], reflect, start)


@lower("aten::_linalg_eigh", refuses="biuh")
def linalg_eigh(
    A: jax.Array, UPLO: str = "L", compute_v: bool = True, *, outs
) -> tuple[jax.Array, jax.Array]:
    lower = UPLO.upper() == "L"
    if target.is_portable():
        A = _hermitian(A, lower)
    vectors, values = lax.linalg.eigh(A, lower=lower, symmetrize_input=False)
    message = (
        "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned "
        "or has too many repeated eigenvalues"
    )
    failed = jnp.any(values != values, axis=-1) & ~_is_excused(A, compute_v)
    check(jnp.any(failed), message, LinAlgError)
    return values, vectors if compute_v else lax.full(outs[1].shape, 0, A.dtype)


def _is_excused(A: jax.Array, compute_v: bool) -> jax.Array:
    """Whether LAPACK, as torch calls it, gives NaN for matrices that are not finite: it iterates on
    three rows and more, and divides eigenvectors of more than 25 into parts, unchecked."""
    has_infinity = jnp.any(jnp.isinf(A), axis=(-2, -1))
    if A.shape[-1] > 2 and not (compute_v and A.shape[-1] > 25):
        return has_infinity
    return has_infinity | jnp.any(jnp.isnan(A), axis=(-2, -1))


# Where it is differentiated, `lax.linalg.eigh` reads both triangles.
@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def _hermitian(A: jax.Array, lower: bool) -> jax.Array:
    """The Hermitian matrix of which `A` has one triangle. As in torch, its gradient is that of
    the whole matrix."""
    triangle = jnp.tril(A, -1) if lower else jnp.triu(A, 1)
    diagonal = jnp.where(jnp.eye(A.shape[-1], dtype=bool), A.real, 0)
    return triangle + triangle.mT.conj() + diagonal


@_hermitian.defjvp
def _tangent_of_hermitian(
    lower: bool, primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    return _hermitian(primals[0], lower), tangents[0]


@lower("aten::linalg_eig", refuses="biuh")
def linalg_eig(self: jax.Array) -> tuple[jax.Array, jax.Array]:
    _require_eig()
    x = _finite(self, "torch.linalg.eig")
    return tuple(_eig(x, compute_left_eigenvectors=False))


@lower("aten::_linalg_eigvals", refuses="biuh", kernel_needs="finite")
def linalg_eigvals(self: jax.Array) -> jax.Array:
    _require_eig()
    x = _finite(self, "torch.linalg.eigvals")
    only_values = {"compute_left_eigenvectors": False, "compute_right_eigenvectors": False}
    return _eig(x, **only_values)[0]


def _require_eig() -> None:
    if not target.has_eig():
        raise Unsupported("eigenvalues of general matrices")


def _eig(x: jax.Array, **which: bool) -> list[jax.Array]:
    """`lax.linalg.eig` of matrices scaled by powers of two, which rounds nothing.

    LAPACK scales a matrix whose largest element is beyond [9e-13, 1.1e12] (float32), and scipy's,
    which jax calls, does not scale the eigenvalues back.
    """
    info = jnp.finfo(x.dtype)
    largest = jnp.max(jnp.abs(x), axis=(-2, -1), initial=0, keepdims=True)
    bounded = jnp.clip(largest, info.tiny, info.max / 8)  # 1 / scale is a normal number.
    scale = lax.reduce_precision(bounded, info.nexp, 0)
    values, *vectors = lax.linalg.eig(x * (1 / scale).astype(x.dtype), **which)
    return [values * scale[..., 0].astype(values.dtype), *vectors]


def _finite(x: jax.Array, function: str) -> jax.Array:
    """`x`, with zeros for what a check reports, because cuSOLVER fails with what is not finite."""
    is_finite = jnp.isfinite(x)
    message = f"{function}: input tensor should not contain infs or NaNs."
    check(~jnp.all(is_finite), message, RuntimeError)
    return jnp.where(is_finite, x, 0)


@lower("aten::_linalg_svd", refuses="biuh")
def linalg_svd(
    A: jax.Array,
    full_matrices: bool = False,
    compute_uv: bool = True,
    *,
    driver: str | None = None,
    outs,
) -> tuple[jax.Array, ...]:
    if compute_uv and not target.has_singular_vectors(A.dtype):
        raise Unsupported("singular vectors")
    message = (
        "linalg.svd: The algorithm failed to converge because the input matrix contained "
        "non-finite values"
    )
    check(jnp.any(A != A), message, LinAlgError)
    if compute_uv:
        return tuple(jnp.linalg.svd(A, full_matrices=full_matrices))
    values = jnp.linalg.svd(A, compute_uv=False)
    left, right = (lax.full(out.shape, 0, out.dtype) for out in (outs[0], outs[2]))
    return left, values, right


@lower(
    "aten::linalg_cross", refuses="b", one_dtype="self other", shares="self=nothing other=nothing"
)
def linalg_cross(self: jax.Array, other: jax.Array, *, dim: int = -1, outs) -> jax.Array:
    a, b = (jnp.broadcast_to(x, outs[0].shape) for x in (self, other))
    return jnp.cross(a, b, axis=canonical_dim(dim, a.ndim))


@lower("aten::linalg_matrix_exp")
def linalg_matrix_exp(self: jax.Array) -> jax.Array:
    """exp(a) is exp(a / 2ⁿ) squared n times. jax rounds n down, and its approximation is for norms
    up to a limit: from there to twice the limit it is off by up to 11 %."""
    a = opmath(self)
    if a.shape[-1] == 1:
        return jnp.exp(a)
    limit = 3.9 if a.dtype in (np.float32, np.complex64) else 5.3
    norm = jnp.max(jnp.sum(jnp.abs(a), axis=-2), axis=-1, initial=0)
    count = jnp.clip(jnp.ceil(jnp.log2(norm / limit)), 0, 64)
    scale = jnp.exp2(-count)[..., None, None].astype(a.dtype)
    precision = target.product_precision(a.dtype)

    def square(i: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.where((i < count)[..., None, None], jnp.matmul(x, x, precision=precision), x)

    most = jnp.max(jnp.nan_to_num(count), initial=0).astype(np.int32)
    return lax.fori_loop(0, most, square, jax.scipy.linalg.expm(a * scale, max_squarings=0))
