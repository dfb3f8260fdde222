"""A sentiment model behind a small service class: sentences of any length."""
import sys

import numpy as np
import paddle.fluid as fluid
from paddle.fluid import core

WORDS = ["bad", "awful", "boring", "film", "the", "was", "good", "great", "funny", "not"]


def network(words):
    table = np.random.RandomState(0).uniform(-0.3, 0.3, (len(WORDS), 8)).astype("float32")
    emb = fluid.layers.embedding(
        words, [len(WORDS), 8],
        param_attr=fluid.ParamAttr(name="emb", initializer=fluid.initializer.NumpyArrayInitializer(table)))
    pool = fluid.layers.sequence_pool(emb, "average")
    weight = np.random.RandomState(1).uniform(-0.3, 0.3, (8, 2)).astype("float32")
    prob = fluid.layers.fc(
        pool, 2, act="softmax",
        param_attr=fluid.ParamAttr(name="w", initializer=fluid.initializer.NumpyArrayInitializer(weight)))
    return prob, fluid.layers.scale(pool, 10.0)


def samples(seed, count=8):
    rng = np.random.RandomState(seed)
    for _ in range(count):
        label = rng.randint(2)
        mood = rng.randint(6, 9, 3) if label else rng.randint(0, 3, 3)
        yield np.concatenate([rng.randint(3, 6, rng.randint(1, 4)), mood]), label


def train(path):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        words = fluid.data("words", [None, 1], "int64", lod_level=1)
        label = fluid.data("label", [None, 1], "int64")
        prob, pooled = network(words)
        loss = fluid.layers.mean(fluid.layers.cross_entropy(prob, label))
        fluid.optimizer.Adagrad(0.3).minimize(loss)
    place = fluid.CPUPlace()
    exe = fluid.Executor(place)
    feeder = fluid.DataFeeder([words, label], place, main)
    exe.run(startup)
    for step in range(10):
        batch = [(ids.reshape(-1, 1), [y]) for ids, y in samples(step)]
        cost, = exe.run(main, feed=feeder.feed(batch), fetch_list=[loss])
    print("loss %.5f" % cost[0])
    fluid.io.save_inference_model(path, ["words"], [prob, pooled], exe, main)


class Service(object):
    def __init__(self, path, kind):
        if kind == "native":
            config = core.NativeConfig()
            config.model_dir = path
            config.use_gpu = False
            config.fraction_of_gpu_memory = 0.1
        else:
            config = core.AnalysisConfig(path)
            config.disable_gpu()
            config.disable_glog_info()
            config.switch_ir_optim(kind == "optimised")
        self.predictor = core.create_paddle_predictor(config)

    def __call__(self, sentences):
        ids = [[WORDS.index(w) for w in s.split()] for s in sentences]
        offsets = np.cumsum([0] + [len(s) for s in ids])
        flat = np.concatenate(ids).reshape(-1, 1).astype("int64")
        tensor = core.PaddleTensor(data=flat, lod=[offsets.tolist()], copy=False)
        prob, pooled = self.predictor.run([tensor])
        assert prob.dtype == core.PaddleDType.FLOAT32
        return prob.as_ndarray(), pooled.as_ndarray()


def main():
    train("sentiment")
    texts = ["the film was great", "boring boring film", "good", "the film was not funny was it".replace(" it", " bad")]
    for kind in sys.argv[1:]:
        service = Service("sentiment", kind)
        for batch in (texts, texts[:1], texts[2:]):
            prob, pooled = service(batch)
            for text, row, features in zip(batch, prob, pooled):
                print("%-10s %-30s %.4f %.4f" % (kind, text, row[1], np.abs(features).sum()))


if __name__ == "__main__":
    main()
