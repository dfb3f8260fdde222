"""Programs that smaller corners of the reference's API build: run under it.

Writes small_programs.json: {name: [[main ops], [startup ops]]}, an op as
[type, {slot: names}, {slot: names}, {attribute: value}] without what every op has.
"""

import json
from pathlib import Path

import paddle.fluid as fluid

COMMON = {"op_role", "op_role_var", "op_namescope", "op_callstack", "op_device"}
HERE = Path(__file__).parent


def ops(program):
    found = []
    for op in program.global_block().ops:
        ins = {s: op.input(s) for s in op.input_names if op.input(s)}
        outs = {s: op.output(s) for s in op.output_names if op.output(s)}
        attrs = {a: op.attr(a) for a in sorted(op.attr_names) if a not in COMMON}
        found.append([op.type, ins, outs, attrs])
    return found


def decay(base, **given):
    x = fluid.data("x", [None, 3])
    loss = fluid.layers.mean(fluid.layers.fc(x, 2))
    kind = fluid.contrib.extend_with_decoupled_weight_decay(base)
    kind(**given).minimize(loss)


def decay_adam():
    decay(fluid.optimizer.Adam, weight_decay=0.1, learning_rate=0.01)


def decay_momentum_of_some():
    decay(
        fluid.optimizer.Momentum,
        weight_decay=0.5,
        apply_decay_param_fun=lambda name: ".w" in name,
        learning_rate=0.01,
        momentum=0.9,
    )


def ctr_metric_bundle():
    x, y = (fluid.data(n, [None, 1]) for n in "xy")
    fluid.contrib.layers.ctr_metric_bundle(x, y)


def generated_layers():
    x = fluid.data("x", [None, 3])
    made = fluid.layers.layer_function_generator
    y = made.generate_activation_fn("relu")(x)
    made.generate_layer_fn("elementwise_add")(x, y, act="tanh")
    made.generate_layer_fn("mean")(x=y)


BUILDERS = [decay_adam, decay_momentum_of_some, ctr_metric_bundle]
BUILDERS += [generated_layers]


def build(builder):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        builder()
    return [ops(main), ops(startup)]


if __name__ == "__main__":
    found = {b.__name__: build(b) for b in BUILDERS}
    text = json.dumps(found, indent=0, sort_keys=True)
    (HERE / "small_programs.json").write_text(text + "\n")
