"""Records what FleetUtil of the reference says of counts by bucket.

Runs under the reference; writes fleet_metrics.json beside itself.
"""

import builtins
import json
import os

import numpy as np
import paddle.fluid as fluid
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet
from paddle.fluid.incubate.fleet.utils.fleet_util import FleetUtil

builtins.xrange = range  # it was written for Python 2
HERE = os.path.dirname(os.path.abspath(__file__))


class Alone(role_maker.UserDefinedRoleMaker):
    def _barrier_worker(self):
        pass

    def _all_reduce(self, input, output, mode="sum"):
        output[:] = input


def record(seed, buckets, scale):
    random, scope = np.random.RandomState(seed), fluid.Scope()
    shows = random.randint(0, scale, buckets)
    pos = random.binomial(shows, np.arange(buckets) / float(buckets))
    total = shows.sum()
    values = {"sqrerr": total * 0.1, "abserr": total * 0.2, "prob": total * 0.4}
    values.update(q=total * 0.3, npos=float(pos.sum()), tot=float(total))

    def put(name, value, dtype):
        scope.var(name).get_tensor().set(np.array(value, dtype), fluid.CPUPlace())

    put("pos", pos.reshape(1, -1), "int64")
    put("neg", (shows - pos).reshape(1, -1), "int64")
    for name, value in values.items():
        put(name, [value], "float32")
    util = FleetUtil("transpiler")
    names = ("pos", "neg", "sqrerr", "abserr", "prob", "q", "npos", "tot")
    return {
        "pos": pos.tolist(),
        "neg": (shows - pos).tolist(),
        "values": values,
        "metrics": [float(m) for m in util.get_global_metrics(scope, *names)],
        "auc": float(util.get_global_auc(scope, "pos", "neg")),
    }


if __name__ == "__main__":
    fleet.init(Alone(0, role_maker.Role.WORKER, 1, ["127.0.0.1:6000"]))
    cases = [(0, 50, 200), (1, 1000, 3000), (2, 400, 60), (3, 2000, 50)]
    with open(os.path.join(HERE, "fleet_metrics.json"), "w") as file:
        json.dump([record(*case) for case in cases], file)
