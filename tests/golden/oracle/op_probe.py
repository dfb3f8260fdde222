"""Ask the reference what single ops do: runs under its Python, in a process a case.

A case is a dict: op, inputs (slot -> array, list of arrays, {"rows", "value",
"height"} for selected rows, {"data", "lod"} for sequences), attrs, outs (slots, or
slot -> count), optional shapes (slot -> compile-time shape, -1 allowed), and
optional grads (output slot -> array), which asks for the gradients of all inputs.
"""

import json
import multiprocessing
import os

import numpy as np


def _plain(array):
    array = np.asarray(array)
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "data": array.reshape(-1).tolist(),
    }


def _facts(var):
    try:
        shape = list(var.shape)
    except Exception:
        shape = None
    try:
        level = var.lod_level
    except Exception:
        level = None
    return {
        "shape": shape,
        "dtype": str(var.dtype).split(".")[-1],
        "lod_level": level,
        "kind": str(var.type).split(".")[-1],
    }


def _listed(value):
    return value if isinstance(value, list) else [value]


def _declare(fluid, block, slot, value, index, shape):
    name = f"{slot}_{index}"
    kind, level = fluid.core.VarDesc.VarType.LOD_TENSOR, 0
    array = value
    if isinstance(value, dict) and "rows" in value:
        kind = fluid.core.VarDesc.VarType.SELECTED_ROWS
        array = value["value"]
        base = [value["height"]] + list(array.shape[1:])
    elif isinstance(value, dict):
        array, level = value["data"], len(value["lod"])
        base = array.shape
    else:
        base = array.shape
    more = {"lod_level": level} if level else {}
    return block.create_var(
        name=name,
        shape=list(base if shape is None else shape),
        dtype=str(array.dtype),
        type=kind,
        persistable=True,
        stop_gradient=False,
        **more,
    )


def _load(fluid, scope, name, value, place):
    if isinstance(value, dict) and "rows" in value:
        sparse = scope.var(name).get_selected_rows()
        sparse.set_rows([int(r) for r in value["rows"]])
        sparse.set_height(int(value["height"]))
        sparse.get_tensor().set(value["value"], place)
        return
    tensor = scope.var(name).get_tensor()
    if isinstance(value, dict):
        tensor.set(value["data"], place)
        tensor.set_lod([list(level) for level in value["lod"]])
    else:
        tensor.set(value, place)


def _read(scope, name):
    var = scope.find_var(name)
    try:
        tensor = var.get_tensor()
        found = _plain(np.array(tensor))
        if tensor.lod():
            found["lod"] = tensor.lod()
        return found
    except Exception:
        sparse = var.get_selected_rows()
        found = _plain(np.array(sparse.get_tensor()))
        found["rows"] = list(sparse.rows())
        found["height"] = sparse.height()
        return found


def _ask(case):
    import paddle.fluid as fluid

    main, startup = fluid.Program(), fluid.Program()
    scope, place = fluid.Scope(), fluid.CPUPlace()
    answer = {}
    with fluid.program_guard(main, startup), fluid.scope_guard(scope):
        block = main.global_block()
        ins = {}
        for slot, value in case["inputs"].items():
            shape = case.get("shapes", {}).get(slot)
            ins[slot] = [
                _declare(fluid, block, slot, v, i, shape)
                for i, v in enumerate(_listed(value))
            ]
        outs = {}
        wanted = case["outs"]
        if not isinstance(wanted, dict):
            wanted = dict.fromkeys(wanted, 1)
        for slot, count in wanted.items():
            outs[slot] = [
                ins[case["inplace"][slot]][0]
                if slot in case.get("inplace", {})
                else block.create_var(name=f"{slot}_{i}@OUT", persistable=True)
                for i in range(count)
            ]
        block.append_op(
            type=case["op"], inputs=ins, outputs=outs, attrs=case.get("attrs", {})
        )
        answer["infer"] = {s: [_facts(v) for v in vs] for s, vs in outs.items()}
        fetch = []
        if "grads" in case:
            targets, heads = [], []
            for slot, value in case["grads"].items():
                plain = value["data"] if isinstance(value, dict) else value
                head = block.create_var(
                    name="head_" + slot,
                    shape=list(outs[slot][0].shape),
                    dtype=str(plain.dtype),
                    persistable=True,
                )
                _load(fluid, scope, head.name, value, place)
                targets.append(outs[slot][0])
                heads.append(head)
            given = [
                v
                for vs in ins.values()
                for v in vs
                if str(v.dtype).split(".")[-1].startswith("FP")
            ]
            found = fluid.gradients(targets, given, heads)
            for var, made in zip(given, found):
                if made is not None:
                    made.persistable = True
                    fetch.append((var.name, made.name))
                    answer.setdefault("infer_grad", {})[var.name] = _facts(made)
        if not case.get("run", True):
            return answer
        for slot, value in case["inputs"].items():
            for i, v in enumerate(_listed(value)):
                _load(fluid, scope, f"{slot}_{i}", v, place)
        fluid.Executor(place).run(main)
        answer["outs"] = {
            s: [_read(scope, v.name) for v in vs] for s, vs in outs.items()
        }
        if fetch:
            answer["grads"] = {n: _read(scope, g) for n, g in fetch}
    return answer


def _job(case, pipe):
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        pipe.send(_ask(case))
    except BaseException as error:
        lines = [line for line in str(error).splitlines() if line.strip()]
        told = [line for line in lines if "Error" in line and "Summary" not in line]
        told = told or lines[-1:] or [type(error).__name__]
        pipe.send({"error": told[-1][:200]})


def ask(case):
    """What the reference answers to one case; {"error": ...} where it refuses."""
    ours, theirs = multiprocessing.Pipe(False)
    worker = multiprocessing.Process(target=_job, args=(case, theirs))
    worker.start()
    theirs.close()
    try:
        answer = ours.recv()
    except EOFError:
        answer = {"error": "crash"}
    worker.join()
    return answer


def echo(value):
    """A case's inputs as plain data, for the tests to feed."""
    if isinstance(value, dict):
        return {k: echo(v) for k, v in value.items()}
    if isinstance(value, list) and value and not np.isscalar(value[0]):
        return [echo(v) for v in value]
    if isinstance(value, np.ndarray):
        return _plain(value)
    return value


def record(cases, path):
    """Ask every case and write questions and answers."""
    import paddle.fluid  # noqa: F401  (the workers inherit the import)

    found = []
    for case in cases:
        answer = ask(case)
        if "error" in answer:
            print(case["op"], case.get("attrs"), answer["error"])
            if answer["error"] == "crash":
                continue  # nothing to learn from
            answer = {"error": "refused"}
        found.append({"case": echo(case), "answer": answer})
    with open(path, "w") as file:
        file.write("[\n" + ",\n".join(json.dumps(f) for f in found) + "\n]\n")
    print(len(found), "cases,", os.path.getsize(path), "bytes")
