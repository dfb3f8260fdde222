"""What people print: tensors, variables, ops, places."""

from __future__ import print_function
import sys
import numpy as np
import paddle
import paddle.fluid as fluid

print(fluid.CPUPlace())
x = fluid.layers.data(name="x", shape=[3], dtype="float32")
ids = fluid.layers.data(name="ids", shape=[1], dtype="int64", lod_level=1)
emb = fluid.layers.embedding(
    ids,
    size=[10, 4],
    is_sparse=True,
    param_attr=fluid.ParamAttr(name="emb", initializer=fluid.initializer.Constant(0.5)),
)
pool = fluid.layers.sequence_pool(emb, "sum")
h = fluid.layers.fc(
    [x, pool],
    2,
    param_attr=fluid.ParamAttr(initializer=fluid.initializer.Constant(0.25)),
    bias_attr=False,
    act="tanh",
)
loss = fluid.layers.mean(h)
fluid.optimizer.SGD(0.1).minimize(loss)
prog = fluid.default_main_program()
print(
    prog.global_block().var("x").name,
    x.shape,
    x.dtype,
    x.lod_level,
    x.type,
    x.stop_gradient,
    x.persistable,
)
print(
    ids.dtype == fluid.core.VarDesc.VarType.INT64,
    ids.lod_level,
    ids.type == fluid.core.VarDesc.VarType.LOD_TENSOR,
)
for op in prog.global_block().ops:
    print(
        op.type,
        op.input_names,
        [n for n in op.output_names if op.output(n)],
        op.input_arg_names,
        op.output_arg_names,
    )
op = prog.global_block().ops[0]
print(
    op.all_attrs()["is_sparse"],
    op.has_attr("padding_idx"),
    op.attr("padding_idx"),
    op.attr("op_role_var"),
    op.has_attr("op_role"),
)
print(
    prog.num_blocks,
    prog.current_block().idx,
    prog.block(0).idx,
    len(prog.blocks),
    prog.global_block().parent_idx,
    prog.global_block().forward_block_idx,
)
print(
    [v.name for v in prog.list_vars() if v.is_data] if hasattr(x, "is_data") else None
)
for p in prog.all_parameters():
    print(
        p.name,
        p.shape,
        p.trainable,
        p.optimize_attr,
        p.regularizer,
        p.do_model_average,
        p.gradient_clip_attr if hasattr(p, "gradient_clip_attr") else None,
    )
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
t = fluid.create_lod_tensor(
    np.array([[1], [2], [3], [4], [4]], "int64"), [[2, 3]], fluid.CPUPlace()
)
print(t)
print(
    t.lod(),
    t.recursive_sequence_lengths(),
    t.has_valid_recursive_sequence_lengths(),
    t.shape(),
    t._dtype(),
)
feed = {"x": np.array([[1, 2, 3], [4, 5, 6]], "float32"), "ids": t}
outs = exe.run(feed=feed, fetch_list=[h, loss, emb], return_numpy=False)
for o in outs[:3]:
    print(type(o).__name__, np.array(o).shape, o.lod())
    print(o)
outs = exe.run(feed=feed, fetch_list=[h, loss])
print(outs)
print(outs[1], repr(outs[1]), outs[1].shape, outs[1][0])
w = fluid.global_scope().find_var("emb").get_tensor()
print(w)
print(np.array(w)[:3], np.asarray(w).dtype, w.shape(), len(w.shape()))
print(fluid.global_scope().find_var("nothing"))
i = fluid.core.LoDTensor()
i.set(np.arange(12).reshape(3, 4).astype("int32"), fluid.CPUPlace())
print(i)
arr = fluid.core.LoDTensorArray()
arr.append(i)
print(len(arr), np.array(arr[0]).sum())
print(fluid.executor.global_scope() is fluid.global_scope())
print(prog.random_seed)
print(paddle.__version__.split(".")[0] in ("1", "0"))
