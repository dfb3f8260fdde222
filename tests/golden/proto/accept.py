"""Does the reference read what fluidx writes?

    python accept.py write DIR          under fluidx: bytes of the local goldens
    $ORACLE accept.py read DIR          under the reference

`read` parses every file, dumps it and compares with the golden dump. Of the bytes that
it takes, the digests go into accepted.json: the test compares what fluidx writes with
them. Dumped facts that saved bytes do not hold (parameter, data, stop_gradient) are
left out of the comparison.
"""

import hashlib
import json
import os
import sys
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
GOLDEN = os.path.join(HERE, "..", "transpiler")
NETWORKS = [
    "fc_regression",
    "mlp_softmax",
    "lenet_bn",
    "slice_shapes",
    "emb_dense",
    "emb_sparse",
    "emb_v2",
    "shared_param",
    "frozen_param",
    "dropout_net",
    "word2vec",
]
LOST = ("parameter", "trainable", "is_data", "stop_gradient")


def goldens():
    """(name, dump) of the networks' main and startup programs."""
    with zipfile.ZipFile(os.path.join(GOLDEN, "out.zip")) as archive:
        for network in NETWORKS:
            found = json.loads(archive.read("local/%s.json" % network).decode())
            for kind in ("main", "startup"):
                yield "%s-%s" % (network, kind), found[kind]


def without_lost(dumped):
    for block in dumped["blocks"]:
        for facts in block["vars"].values():
            for fact in LOST:
                facts.pop(fact, None)
    return dumped


def write(folder):
    sys.path.insert(0, os.path.join(HERE, "..", ".."))
    from golden.load import load

    for name, dumped in goldens():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(load(dumped, defaults=False).serialize_to_string())


def read(folder):
    sys.path.insert(0, GOLDEN)
    import paddle.fluid as fluid
    from dump import dump

    accepted = {}
    for name, dumped in goldens():
        with open(os.path.join(folder, name), "rb") as f:
            data = f.read()
        program = fluid.Program.parse_from_string(data)
        if without_lost(dump(program)) == without_lost(dumped):
            accepted[name] = hashlib.sha256(data).hexdigest()
        else:
            print("%s: not what was written" % name)
    with open(os.path.join(HERE, "accepted.json"), "w") as f:
        json.dump(accepted, f, indent=1, sort_keys=True)
        f.write("\n")


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](sys.argv[2])
