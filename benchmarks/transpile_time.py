"""How long transpiling takes as programs and clusters grow.

    python benchmarks/transpile_time.py [--repeat N]

One row per size: the trainer's and one server's programs, without and with the check
of the whole set, for which the programs of all servers are made. The cost is linear
if the last column stays level. The reference took 44 s for 1,613 ops on 16 servers
and 195 s for 3,213 ops on 32, unchecked.
"""

from __future__ import annotations

import argparse
import time

from fluidx.ir import Operator, Parameter, Program, Variable
from fluidx.transpiler import DistributeTranspiler, DistributeTranspilerConfig

SIZES = ((100, 2), (400, 4), (800, 8), (1613, 16), (3213, 32), (5000, 64))


def deep_net(ops: int) -> tuple[Program, Program]:
    """A stack of 200 x 200 layers trained by momentum, with about `ops` ops.

    Made without layers, so that nothing but transpiling is measured: per layer mul,
    elementwise_add, their gradients and two updates (8 ops with relu).
    """
    main, startup = Program(), Program()
    block, init = main.global_block(), startup.global_block()

    def var(name: str, shape: list[int], home: object = block, **facts: bool) -> str:
        home.vars[name] = Variable(home, name=name, shape=shape, **facts)  # type: ignore
        return name

    def add(type: str, ins: dict, outs: dict, role: int = 0, **attrs: object) -> None:
        block.ops.append(Operator(block, type, ins, outs, {"op_role": role, **attrs}))

    def param(name: str, shape: list[int]) -> None:
        for home in (block, init):
            home.vars[name] = Parameter(home, shape, "float32", name=name)
            var(f"{name}_velocity_0", shape, home, persistable=True)
        var(f"{name}@GRAD", shape)
        for made in (name, f"{name}_velocity_0"):
            attrs = {"shape": shape, "dtype": 5, "value": 0.0, "op_role": 0}
            op = Operator(init, "fill_constant", {}, {"Out": made}, attrs)
            init.ops.append(op)

    var("learning_rate_0", [1], persistable=True)
    var("learning_rate_0", [1], init, persistable=True)
    attrs = {"shape": [1], "dtype": 5, "value": 0.1, "op_role": 0}
    init.ops.append(
        Operator(init, "fill_constant", {}, {"Out": "learning_rate_0"}, attrs)
    )
    x = var("x", [-1, 200], is_data=True)
    layers = max(1, ops // 8)
    hidden = [x]
    for i in range(layers):
        w, b, h = f"fc_{i}.w_0", f"fc_{i}.b_0", [f"fc_{i}.tmp_{k}" for k in range(3)]
        param(w, [200, 200])
        param(b, [200])
        for name in h:
            var(name, [-1, 200])
            var(f"{name}@GRAD", [-1, 200])
        add("mul", {"X": hidden[-1], "Y": w}, {"Out": h[0]})
        add("elementwise_add", {"X": h[0], "Y": b}, {"Out": h[1]})
        add("relu", {"X": h[1]}, {"Out": h[2]})
        hidden.append(h[2])
    for i in reversed(range(layers)):
        w, b, h = f"fc_{i}.w_0", f"fc_{i}.b_0", [f"fc_{i}.tmp_{k}" for k in range(3)]
        add("relu_grad", {"Out@GRAD": f"{h[2]}@GRAD"}, {"X@GRAD": f"{h[1]}@GRAD"}, 1)
        for type, name in (("elementwise_add_grad", b), ("mul_grad", w)):
            outs = {"Y@GRAD": f"{name}@GRAD"}
            pair = [name, f"{name}@GRAD"]
            add(type, {"Out@GRAD": f"{h[1]}@GRAD"}, outs, 1, op_role_var=pair)
    for i in range(layers):
        for name in (f"fc_{i}.b_0", f"fc_{i}.w_0"):
            ins = {"Param": name, "Grad": f"{name}@GRAD"}
            ins["Velocity"] = f"{name}_velocity_0"
            ins["LearningRate"] = "learning_rate_0"
            outs = {"ParamOut": name, "VelocityOut": f"{name}_velocity_0"}
            pair = [name, f"{name}@GRAD"]
            add("momentum", ins, outs, 2, op_role_var=pair)
    return main, startup


def timed(ops: int, servers: int, check: bool) -> tuple[int, float]:
    """(ops, seconds) of a trainer's programs and one server's, checked or not."""
    main, startup = deep_net(ops)
    count = len(main.global_block().ops)
    endpoints = [f"127.0.0.1:{6000 + i}" for i in range(servers)]
    config = DistributeTranspilerConfig()
    config.verify = check
    begin = time.perf_counter()
    transpiler = DistributeTranspiler(config)
    transpiler.transpile(
        0, main, ",".join(endpoints), 2, startup_program=startup, sync_mode=True
    )
    transpiler.get_trainer_program()
    transpiler.get_pserver_programs(endpoints[0])
    return count, time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=3)
    repeat = parser.parse_args().repeat
    print(
        f"{'ops':>6} {'servers':>7} {'unchecked':>10} {'checked':>10} {'us per op':>10}"
    )
    timed(100, 2, True)  # the first run loads the ops
    for ops, servers in SIZES:
        plain = min(timed(ops, servers, False)[1] for _ in range(repeat))
        checked = min(timed(ops, servers, True)[1] for _ in range(repeat))
        count = timed(ops, servers, False)[0]
        print(
            f"{count:6} {servers:7} {plain:8.3f} s {checked:8.3f} s "
            f"{checked / count * 1e6:10.0f}"
        )


if __name__ == "__main__":
    main()
