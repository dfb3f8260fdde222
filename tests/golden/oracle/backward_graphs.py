"""Small hand-made graphs and what `append_backward` makes of them.

`CASES` maps a name to a function that builds a graph through `Block.append_op` and
differentiates it. Run under the reference, this file writes backward_graphs.json
beside itself; the tests build the same graphs with fluidx and compare.
"""

import json
import os
import sys

CASES = {}


def case(build):
    CASES[build.__name__] = build
    return build


class Graph:
    """A main program under construction; ``ops`` by type, slots by keyword."""

    def __init__(self, fluid):
        self.fluid = fluid
        self.program = fluid.Program()
        self.block = self.program.global_block()

    def data(self, name, shape, dtype="float32", stop_gradient=True):
        return self.block.create_var(
            name=name,
            shape=shape,
            dtype=dtype,
            stop_gradient=stop_gradient,
            is_data=True,
        )

    def param(self, name, shape, trainable=True):
        return self.block.create_parameter(
            name=name, shape=shape, dtype="float32", trainable=trainable
        )

    def var(self, name, stop_gradient=False, dtype="float32"):
        return self.block.create_var(
            name=name, dtype=dtype, stop_gradient=stop_gradient
        )

    def op(self, type, outputs, attrs=None, **inputs):
        """outputs: {slot: name(s)} or one name for Out. Returns the variables."""
        if not isinstance(outputs, dict):
            outputs = {"Out": outputs}
        made = {}
        for slot, names in outputs.items():
            many = names if isinstance(names, list) else [names]
            made[slot] = [n if not isinstance(n, str) else self.var(n) for n in many]
        ins = {k: v if isinstance(v, list) else [v] for k, v in inputs.items()}
        self.block.append_op(
            type=type, inputs=ins, outputs=made, attrs=dict(attrs or {})
        )
        flat = [v for vs in made.values() for v in vs]
        return flat[0] if len(flat) == 1 else flat

    def linear(self, name="h", x="x", w="w", width=5):
        """h = x w with data x [4, 3] and a parameter w [3, width]."""
        block = self.block
        x = block.var(x) if block.has_var(x) else self.data(x, [4, 3])
        w = block.var(w) if block.has_var(w) else self.param(w, [3, width])
        return self.op(
            "mul", name, X=x, Y=w, attrs={"x_num_col_dims": 1, "y_num_col_dims": 1}
        )

    def backward(self, loss, **kwargs):
        pairs = self.fluid.backward.append_backward(loss, **kwargs)
        return [[p.name, g.name if g is not None else None] for p, g in pairs]

    def gradients(self, targets, inputs, **kwargs):
        made = self.fluid.gradients(targets, inputs, **kwargs)
        return [None if v is None else v.name for v in made]


def _add(g, name, x, y):
    return g.op("elementwise_add", name, {"axis": -1}, X=x, Y=y)


def _two_uses(g):
    h = g.linear()
    a = g.op("square", "a", X=h)
    b = g.op("relu", "b", X=h)
    return h, a, b, g.op("mean", "loss", X=_add(g, "c", a, b))


@case
def chain(g):
    loss = g.op("mean", "loss", X=g.op("square", "a", X=g.linear()))
    return g.backward(loss)


@case
def used_twice(g):
    return g.backward(_two_uses(g)[-1])


@case
def used_three_times(g):
    h = g.linear()
    a = g.op("square", "a", X=h)
    b = g.op("relu", "b", X=h)
    c = g.op("tanh", "c", X=h)
    total = _add(g, "e", _add(g, "d", a, b), c)
    return g.backward(g.op("mean", "loss", X=total))


@case
def twice_in_one_op(g):
    h = g.linear()
    a = g.op("elementwise_mul", "a", {"axis": -1}, X=h, Y=h)
    return g.backward(g.op("mean", "loss", X=a))


@case
def twice_in_one_op_and_once_more(g):
    h = g.linear()
    a = g.op("elementwise_mul", "a", {"axis": -1}, X=h, Y=h)
    b = g.op("relu", "b", X=h)
    return g.backward(g.op("mean", "loss", X=_add(g, "c", a, b)))


@case
def sum_of_repeats(g):
    h = g.linear()
    a = g.op("relu", "a", X=h)
    b = g.op("sum", "b", X=[h, a, h])
    return g.backward(g.op("mean", "loss", X=b))


@case
def in_place_relu(g):
    h = g.linear()
    g.op("relu", h, X=h)
    return g.backward(g.op("mean", "loss", X=h))


@case
def in_place_between_uses(g):
    h = g.linear()
    a = g.op("square", "a", X=h)
    g.op("scale", h, {"scale": 2.0}, X=h)
    b = g.op("relu", "b", X=h)
    return g.backward(g.op("mean", "loss", X=_add(g, "c", a, b)))


@case
def written_twice(g):
    h = g.linear()
    t = g.op("square", "t", X=h)
    a = g.op("relu", "a", X=t)
    k = g.linear("k", w="w2")
    g.op("square", t, X=k)
    return g.backward(g.op("mean", "loss", X=_add(g, "c", a, t)))


@case
def stop_in_the_middle(g):
    h = g.linear()
    a = g.op("square", "a", X=h)
    a.stop_gradient = True
    b = g.op("relu", "b", X=h)
    return g.backward(g.op("mean", "loss", X=_add(g, "c", a, b)))


@case
def stop_cuts_all(g):
    h = g.linear()
    a = g.op("square", "a", X=h)
    a.stop_gradient = True
    k = g.linear("k", w="w2")
    b = g.op("elementwise_mul", "b", {"axis": -1}, X=a, Y=k)
    return g.backward(g.op("mean", "loss", X=b))


@case
def split_one_unused(g):
    h = g.linear(width=6)
    a, b = g.op(
        "split", {"Out": ["a", "b"]}, {"num": 2, "axis": 1, "sections": []}, X=h
    )
    return g.backward(g.op("mean", "loss", X=g.op("relu", "c", X=a)))


@case
def split_last_unused_first_stopped(g):
    h = g.linear(width=6)
    a, b, c = g.op(
        "split", {"Out": ["a", "b", "c"]}, {"num": 3, "axis": 1, "sections": []}, X=h
    )
    a.stop_gradient = True
    return g.backward(g.op("mean", "loss", X=_add(g, "d", a, b)))


@case
def split_all_stopped(g):
    h = g.linear(width=6)
    a, b = g.op(
        "split", {"Out": ["a", "b"]}, {"num": 2, "axis": 1, "sections": []}, X=h
    )
    a.stop_gradient = b.stop_gradient = True
    k = g.linear("k", w="w2", width=3)
    c = _add(g, "d", _add(g, "c", a, b), k)
    return g.backward(g.op("mean", "loss", X=c))


@case
def split_unused_goes_elsewhere(g):
    h = g.linear(width=6)
    a, b = g.op(
        "split", {"Out": ["a", "b"]}, {"num": 2, "axis": 1, "sections": []}, X=h
    )
    g.op("relu", "other", X=b)
    return g.backward(g.op("mean", "loss", X=a))


def _swce(g):
    h = g.linear()
    label = g.data("label", [4, 1], "int64")
    return g.op(
        "softmax_with_cross_entropy",
        {"Softmax": "p", "Loss": "each"},
        {"soft_label": False, "axis": -1},
        Logits=h,
        Label=label,
    )


@case
def loss_output_of_two(g):
    p, each = _swce(g)
    return g.backward(g.op("mean", "loss", X=each))


@case
def both_outputs_used(g):
    p, each = _swce(g)
    a = g.op("mean", "a", X=p)
    b = g.op("mean", "b", X=each)
    return g.backward(_add(g, "loss", a, b))


@case
def top_k_values(g):
    h = g.linear()
    value, index = g.op("top_k", {"Out": "value", "Indices": "index"}, {"k": 2}, X=h)
    return g.backward(g.op("mean", "loss", X=value))


@case
def branch_beside(g):
    h, a, b, loss = _two_uses(g)
    g.op("mean", "metric", X=g.op("tanh", "t", X=h))
    return g.backward(loss)


@case
def dead_parameter(g):
    h = g.linear()
    g.linear("k", w="w2")
    return g.backward(g.op("mean", "loss", X=h))


@case
def shared_weight(g):
    a = g.linear("a", x="x1")
    b = g.linear("b", x="x2")
    c = g.linear("c", x="x3")
    total = _add(g, "e", _add(g, "d", a, b), c)
    return g.backward(g.op("mean", "loss", X=total))


@case
def weight_and_bias(g):
    h = g.linear()
    bias = g.param("bias", [5])
    a = g.op("elementwise_add", "a", {"axis": 1}, X=h, Y=bias)
    return g.backward(g.op("mean", "loss", X=a))


@case
def frozen_weight(g):
    h = g.linear(w="w")
    frozen = g.param("frozen", [5, 2], trainable=False)
    frozen.stop_gradient = True
    a = g.op("mul", "a", {"x_num_col_dims": 1, "y_num_col_dims": 1}, X=h, Y=frozen)
    return g.backward(g.op("mean", "loss", X=a))


@case
def frozen_first(g):
    frozen = g.param("w", [3, 5], trainable=False)
    frozen.stop_gradient = True
    h = g.linear()
    k = g.linear("k", w="w2")
    return g.backward(g.op("mean", "loss", X=_add(g, "c", h, k)))


@case
def no_grad_set_weight(g):
    h = g.linear()
    k = g.linear("k", w="w2")
    loss = g.op("mean", "loss", X=_add(g, "c", h, k))
    return g.backward(loss, no_grad_set={"w"})


@case
def no_grad_set_middle(g):
    h, a, b, loss = _two_uses(g)
    return g.backward(loss, no_grad_set={"a"})


@case
def no_grad_set_shared_middle(g):
    h, a, b, loss = _two_uses(g)
    k = g.linear("k", w="w2")
    loss = _add(g, "loss2", loss, g.op("mean", "m", X=k))
    return g.backward(loss, no_grad_set={"h"})


@case
def parameter_list(g):
    h = g.linear()
    k = g.linear("k", w="w2")
    loss = g.op("mean", "loss", X=_add(g, "c", h, k))
    return g.backward(loss, parameter_list=["w2"])


@case
def parameter_list_of_early(g):
    h = g.linear()
    w2 = g.param("w2", [5, 2])
    k = g.op("mul", "k", {"x_num_col_dims": 1, "y_num_col_dims": 1}, X=h, Y=w2)
    return g.backward(g.op("mean", "loss", X=k), parameter_list=["w2"])


@case
def ops_behind_loss(g):
    loss = g.op("mean", "loss", X=g.linear())
    g.op("scale", "report", {"scale": 100.0}, X=loss)
    return g.backward(loss)


@case
def loss_is_scaled(g):
    loss = g.op("mean", "mean", X=g.linear())
    return g.backward(g.op("scale", "loss", {"scale": 100.0}, X=loss))


@case
def data_with_gradient(g):
    g.data("x", [4, 3], stop_gradient=False)
    loss = g.op("mean", "loss", X=g.op("square", "a", X=g.linear()))
    return g.backward(loss)


@case
def sparse_table_twice(g):
    table = g.param("table", [10, 4])
    parts = []
    for i in range(2):
        ids = g.data(f"ids{i}", [6, 1], "int64")
        parts.append(
            g.op(
                "lookup_table",
                f"e{i}",
                {"is_sparse": True, "padding_idx": -1},
                Ids=ids,
                W=table,
            )
        )
    return g.backward(g.op("mean", "loss", X=_add(g, "c", *parts)))


@case
def sparse_and_dense_use(g):
    table = g.param("table", [10, 4])
    ids = g.data("ids", [6, 1], "int64")
    e = g.op(
        "lookup_table", "e", {"is_sparse": True, "padding_idx": -1}, Ids=ids, W=table
    )
    a = g.op("mean", "a", X=e)
    b = g.op("mean", "b", X=g.op("square", "s", X=table))
    return g.backward(_add(g, "loss", a, b))


@case
def reshape_with_shape_output(g):
    h = g.linear(width=6)
    a, _ = g.op("reshape2", {"Out": "a", "XShape": "xshape"}, {"shape": [-1, 2]}, X=h)
    return g.backward(g.op("mean", "loss", X=a))


@case
def constants_beside(g):
    h = g.linear()
    one = g.op("fill_constant", "one", {"shape": [4, 5], "value": 1.0, "dtype": 5})
    return g.backward(g.op("mean", "loss", X=_add(g, "c", h, one)))


@case
def constants_beside_stopped(g):
    h = g.linear()
    one = g.op("fill_constant", "one", {"shape": [4, 5], "value": 1.0, "dtype": 5})
    one.stop_gradient = True
    return g.backward(g.op("mean", "loss", X=_add(g, "c", h, one)))


@case
def through_op_without_gradient(g):
    h = g.linear()
    floor = g.op("sign", "sign", X=h)
    top = g.op("one_hot", "hot", {"depth": 5}, X=g.data("ids", [4, 1], "int64"))
    return g.backward(g.op("mean", "loss", X=_add(g, "c", floor, top)))


@case
def assigned(g):
    h = g.linear()
    a = g.op("assign", "a", X=h)
    b = g.op("square", "b", X=h)
    return g.backward(g.op("mean", "loss", X=_add(g, "c", a, b)))


@case
def unused_in_concat(g):
    h = g.linear()
    x = g.data("other", [4, 2])
    c = g.op("concat", "c", {"axis": 1}, X=[x, h, h])
    return g.backward(g.op("mean", "loss", X=c))


@case
def label_from_split(g):
    h = g.linear(width=6)
    a, b = g.op(
        "split", {"Out": ["a", "b"]}, {"num": 2, "axis": 1, "sections": []}, X=h
    )
    soft = g.op("softmax", "soft", {"axis": -1}, X=b)
    p, each = g.op(
        "softmax_with_cross_entropy",
        {"Softmax": "p", "Loss": "each"},
        {"soft_label": True, "axis": -1},
        Logits=a,
        Label=soft,
    )
    return g.backward(g.op("mean", "loss", X=each))


@case
def label_chain_from_parameter(g):
    h = g.linear()
    k = g.linear("k", w="w2")
    soft = g.op("softmax", "soft", {"axis": -1}, X=g.op("square", "k2", X=k))
    p, each = g.op(
        "softmax_with_cross_entropy",
        {"Softmax": "p", "Loss": "each"},
        {"soft_label": True, "axis": -1},
        Logits=h,
        Label=soft,
    )
    return g.backward(g.op("mean", "loss", X=each))


@case
def two_parameters_in_one_op(g):
    w = g.param("w", [4, 5])
    u = g.param("u", [4, 5])
    return g.backward(g.op("mean", "loss", X=_add(g, "c", w, u)))


@case
def two_shared_parameters(g):
    w = g.param("w", [4, 5])
    u = g.param("u", [4, 5])
    c = _add(g, "c", u, w)
    d = g.op("elementwise_mul", "d", {"axis": -1}, X=w, Y=u)
    e = _add(g, "e", _add(g, "f", c, d), u)
    return g.backward(g.op("mean", "loss", X=e))


@case
def parameter_is_stopped(g):
    h = g.linear()
    g.block.var("w").stop_gradient = True
    k = g.linear("k", w="w2")
    return g.backward(g.op("mean", "loss", X=_add(g, "c", h, k)))


@case
def written_again_behind_sum(g):
    h = g.linear()
    a = g.op("square", "a", X=h)
    b = g.op("relu", "b", X=h)
    c = _add(g, "c", a, b)
    g.op("assign", h, X=c)
    d = g.op("tanh", "d", X=h)
    e = g.op("sigmoid", "e", X=h)
    return g.backward(g.op("mean", "loss", X=_add(g, "f", d, e)))


@case
def loss_of_two_uses(g):
    m = g.op("mean", "m", X=g.linear())
    loss = g.op("elementwise_mul", "loss", {"axis": -1}, X=m, Y=m)
    return g.backward(loss)


@case
def loss_feeds_itself(g):
    loss = g.op("mean", "loss", X=g.linear())
    g.op("scale", loss, {"scale": 3.0}, X=loss)
    return g.backward(loss)


@case
def loss_is_parameter_mean(g):
    w = g.param("w", [4, 5])
    return g.backward(g.op("mean", "loss", X=w))


@case
def integer_data_path(g):
    table = g.param("table", [10, 4])
    ids = g.data("ids", [6, 1], "int64", stop_gradient=False)
    e = g.op(
        "lookup_table", "e", {"is_sparse": False, "padding_idx": -1}, Ids=ids, W=table
    )
    return g.backward(g.op("mean", "loss", X=e))


@case
def one_side_reached(g):
    h, a, b, loss = _two_uses(g)
    return g.gradients([loss], [a])


@case
def second_layer_only(g):
    h = g.op("relu", "r", X=g.linear())
    w2 = g.param("w2", [5, 2])
    k = g.op("mul", "k", {"x_num_col_dims": 1, "y_num_col_dims": 1}, X=h, Y=w2)
    return g.gradients([g.op("mean", "loss", X=k)], [w2])


@case
def gradients_split_one_unused(g):
    h = g.linear(width=6)
    a, b = g.op(
        "split", {"Out": ["a", "b"]}, {"num": 2, "axis": 1, "sections": []}, X=h
    )
    return g.gradients([a], [h])


@case
def gradients_behind_first(g):
    """Both target gradients given, one target behind the other."""
    h, a, b, loss = _two_uses(g)
    s, t = g.data("s", [4, 5]), g.data("t", [1])
    return g.gradients([a, loss], [h], target_gradients=[s, t])


@case
def backward_twice(g):
    h, a, b, loss = _two_uses(g)
    first = g.backward(loss)
    other = g.op("mean", "other", X=a)
    return first + g.backward(other)


@case
def gradients_of_gradient_thrice(g):
    x = g.data("x", [4, 3], stop_gradient=False)
    a = g.op("square", "a", X=x)
    b = g.op("elementwise_mul", "b", {"axis": -1}, X=a, Y=x)
    d1 = g.gradients([b], [x])
    d2 = g.gradients([g.block.var(d1[0])], [x])
    return d1 + d2


@case
def error_clip(g):
    h = g.linear()
    h.error_clip = g.fluid.clip.ErrorClipByValue(max=2.0, min=-1.0)
    a = g.op("square", "a", X=h)
    b = g.op("relu", "b", X=h)
    loss = g.op("mean", "loss", X=_add(g, "c", a, b))
    return g.backward(loss, callbacks=[g.fluid.clip.error_clip_callback])


@case
def loss_not_scalar(g):
    return g.backward(g.linear())


# ------------------------------------------------------------ fluid.gradients


@case
def gradients_of_input(g):
    x = g.data("x", [4, 3], stop_gradient=False)
    y = g.op("square", "y", X=g.linear())
    return g.gradients([y], [x])


@case
def gradients_of_stopped_input(g):
    x = g.data("x", [4, 3])
    y = g.op("square", "y", X=g.linear())
    return g.gradients([y], [x])


@case
def gradients_of_middle(g):
    h, a, b, loss = _two_uses(g)
    return g.gradients([loss], [h])


@case
def gradients_of_two_targets(g):
    h, a, b, loss = _two_uses(g)
    w = g.block.var("w")
    return g.gradients([a, b], [w, h])


@case
def gradients_with_target_gradients(g):
    h, a, b, loss = _two_uses(g)
    seed = g.data("seed", [4, 5])
    return g.gradients([a, b], [g.block.var("w")], target_gradients=[seed, None])


@case
def gradients_not_reached(g):
    h, a, b, loss = _two_uses(g)
    other = g.param("other", [2])
    return g.gradients([loss], [other, h])


@case
def gradients_no_grad_set(g):
    h, a, b, loss = _two_uses(g)
    return g.gradients([loss], [g.block.var("w")], no_grad_set={"a"})


@case
def gradients_twice(g):
    h, a, b, loss = _two_uses(g)
    w = g.block.var("w")
    return g.gradients([loss], [w]) + g.gradients([loss], [w])


@case
def gradients_then_minimize(g):
    h, a, b, loss = _two_uses(g)
    made = g.gradients([a], [h])
    return made + g.backward(loss)


@case
def gradients_of_self(g):
    h, a, b, loss = _two_uses(g)
    return g.gradients([a], [a])


@case
def gradients_middle_target(g):
    h, a, b, loss = _two_uses(g)
    return g.gradients([loss, a], [h])


@case
def gradients_input_before_target(g):
    h, a, b, loss = _two_uses(g)
    return g.gradients([loss], [h, g.block.var("w"), a])


@case
def penalty(g):
    """A loss built on a gradient: differentiated twice."""
    x = g.data("x", [4, 3], stop_gradient=False)
    h = g.linear()
    a = g.op("square", "a", X=h)
    name = g.gradients([a], [x])[0]
    d = g.block.var(name)
    loss = g.op("mean", "loss", X=g.op("square", "d2", X=d))
    return g.backward(loss)


def record(fluid, name):
    """The ops behind the forward part, the gradient variables, and what came."""
    g = Graph(fluid)
    result = CASES[name](g)
    ops = []
    for op in g.block.ops:
        role = int(op.attr("op_role")) if "op_role" in op.attr_names else None
        has = "op_role_var" in op.attr_names
        ins = {s: list(op.input(s)) for s in op.input_names if op.input(s)}
        outs = {s: list(op.output(s)) for s in op.output_names if op.output(s)}
        roles = list(op.attr("op_role_var")) if has else []
        ops.append([op.type, ins, outs, role, roles])
    facts = {}
    for var in g.block.vars.values():
        if "@GRAD" in var.name:
            kind = str(var.type).split(".")[-1]
            facts[var.name] = [
                list(var.shape),
                str(var.dtype).split(".")[-1],
                kind,
                bool(var.stop_gradient),
                bool(var.persistable),
            ]
    return {"result": result, "ops": ops, "vars": facts}


def main():
    import paddle.fluid as fluid

    found = {}
    for name in sys.argv[1:] or CASES:
        try:
            found[name] = record(fluid, name)
        except Exception as error:
            found[name] = {"error": type(error).__name__}
            print(name, type(error).__name__)
    if not sys.argv[1:]:
        path = os.path.join(
            os.path.dirname(os.path.abspath(__file__)), "backward_graphs.json"
        )
        lines = [
            f'"{k}": {json.dumps(v, sort_keys=True)}' for k, v in sorted(found.items())
        ]
        with open(path, "w") as f:
            f.write("{\n" + ",\n".join(lines) + "\n}\n")
    else:
        for name, facts in found.items():
            show(name, facts)


def show(name, facts):
    print("#", name, facts.get("result"), facts.get("error", ""))
    for type_, ins, outs, role, roles in facts.get("ops", ()):
        print(
            "  ",
            type_,
            " ".join("{}={}".format(k, ",".join(v)) for k, v in ins.items()),
            "->",
            " ".join("{}={}".format(k, ",".join(v)) for k, v in outs.items()),
            role,
            roles,
        )


if __name__ == "__main__":
    main()
