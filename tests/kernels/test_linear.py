"""mul and matmul: values, gradients, shapes, what is not wanted is not made."""

import numpy as np
import pytest
from opcase import OpCase, normal, run_op, suite

from fluidx import kernels
from fluidx.kernels import InferContext, InferError, Meta


def mul_of(i, a):
    x, y = i["X"], i["Y"]
    p, q = a["x_num_col_dims"], a["y_num_col_dims"]
    rows, columns = x.shape[:p], y.shape[q:]
    z = x.reshape(np.prod(rows), -1) @ y.reshape(-1, int(np.prod(columns)))
    return {"Out": z.reshape(rows + columns)}


def mul_case(x, y, p=1, q=1):
    inputs = {"X": normal(*x, seed=1), "Y": normal(*y, seed=2)}
    attrs = {"x_num_col_dims": p, "y_num_col_dims": q}
    return OpCase("mul", inputs, attrs, mul_of, f"{x}{y}{p}{q}")


def matmul_case(x, y, tx=False, ty=False, alpha=1.0):
    """Operands of one axis: a row on the left, a column on the right."""

    def expected(i, a):
        p, q = i["X"], i["Y"]
        p = p.reshape(1, -1) if p.ndim == 1 else p
        q = q.reshape(-1, 1) if q.ndim == 1 else q
        p = np.swapaxes(p, -1, -2) if tx else p
        q = np.swapaxes(q, -1, -2) if ty else q
        z = alpha * (p @ q)
        if i["Y"].ndim == 1 and not ty:
            z = z[..., 0]
        if i["X"].ndim == 1 and not tx:
            z = z[..., 0, :] if i["Y"].ndim > 1 or ty else z[..., 0]
        return {"Out": z if z.ndim else z.reshape(1)}

    inputs = {"X": normal(*x, seed=1), "Y": normal(*y, seed=2)}
    attrs = {"transpose_X": tx, "transpose_Y": ty, "alpha": alpha}
    return OpCase("matmul", inputs, attrs, expected, f"{x}{y}{tx:d}{ty:d}")


CASES = [
    mul_case((3, 4), (4, 5)),
    mul_case((2, 3, 4), (12, 5)),
    mul_case((2, 3, 4), (4, 5), p=2),
    mul_case((2, 12), (3, 4, 5), q=2),
    mul_case((2, 3, 2, 2), (2, 2, 3, 2), p=2, q=2),
    mul_case((1, 4), (4, 1)),
    matmul_case((3, 4), (4, 5)),
    matmul_case((4, 3), (4, 5), tx=True, alpha=0.5),
    matmul_case((3, 4), (5, 4), ty=True, alpha=2.0),
    matmul_case((4, 3), (5, 4), tx=True, ty=True),
    matmul_case((4,), (4,)),
    matmul_case((4,), (3,), tx=True, ty=True),
    matmul_case((3, 4), (4,)),
    matmul_case((4, 3), (4,), tx=True),
    matmul_case((4,), (4, 5)),
    matmul_case((4,), (5, 4), ty=True),
    matmul_case((2, 3, 4), (4, 5)),
    matmul_case((2, 4, 3), (4, 5), tx=True),
    matmul_case((2, 3, 4), (5, 4), ty=True),
    matmul_case((3, 4), (2, 4, 5)),
    matmul_case((2, 3, 4), (2, 4, 5)),
    matmul_case((2, 4, 3), (2, 5, 4), tx=True, ty=True, alpha=3.0),
    matmul_case((2, 3, 2, 4), (2, 3, 4, 5)),
    matmul_case((2, 3, 2, 4), (3, 4, 5)),
    matmul_case((1, 3, 4), (2, 4, 5)),
    matmul_case((2, 1, 3, 4), (1, 2, 4, 5)),
    matmul_case((2, 3, 4), (4,)),
    matmul_case((4,), (2, 4, 5)),
]
test_values = suite(CASES)


@pytest.mark.parametrize("op", ["mul", "matmul"])
def test_only_wanted_gradients_are_made(op):
    x = {"X": normal(3, 4), "Y": normal(4, 5), "Out@GRAD": normal(3, 5)}
    assert set(run_op(op + "_grad", x, {}, wants=["Y@GRAD"])) == {"Y@GRAD"}
    assert set(run_op(op + "_grad", x, {}, wants=["X@GRAD"])) == {"X@GRAD"}


def infer(op, x, y, **attrs):
    definition = kernels.find(op)
    context = InferContext(
        op,
        {"X": [Meta(x)], "Y": [Meta(y)]},
        {**definition.defaults, **attrs},
        {"Out": 1},
    )
    definition.infer(context)
    return context.outs["Out"][0].shape


def test_unknown_sizes():
    assert infer("mul", (-1, -1, 4), (4, 5), x_num_col_dims=2) == (-1, -1, 5)
    assert infer("mul", (-1, 3, -1), (12, 5)) == (-1, 5)
    assert infer("matmul", (-1, 2, 4), (-1, 4, 5)) == (-1, 2, 5)
    assert infer("matmul", (-1, 4), (5, 4), transpose_Y=True) == (-1, 5)


def test_errors_name_shapes():
    with pytest.raises(InferError, match=r"mul: X \(3, 4\) has 4 columns but Y \(5, 2"):
        infer("mul", (3, 4), (5, 2))
    with pytest.raises(InferError, match="mul: x_num_col_dims 2 must split X of shape"):
        infer("mul", (3, 4), (4, 2), x_num_col_dims=2)
    with pytest.raises(InferError, match=r"matmul: X \(3, 4\) .* has 3 columns but"):
        infer("matmul", (3, 4), (4, 2), transpose_X=True)
