"""Pictures from files: trained through paddle.dataset.image, then served."""
from __future__ import print_function

import functools
import os
import random

import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.dataset.image import load_image, resize_short, center_crop, simple_transform, to_chw
from paddle.fluid.core import AnalysisConfig, PaddleTensor, create_paddle_predictor

MEAN = [103.94, 116.78, 123.68]
SIZE = 16
CLASSES = ["red", "green", "blue"]


def write_pictures(folder, count, seed):
    """PPM files in which one colour is the strongest, and a list of them."""
    rng = np.random.RandomState(seed)
    lines = []
    for i in range(count):
        height, width = rng.randint(20, 40, 2)
        img = rng.randint(0, 130, (height, width, 3))
        label = rng.randint(3)
        img[:, :, label] += 110
        name = os.path.join(folder, "%02d.ppm" % i)
        with open(name, "wb") as f:
            f.write(("P6 %d %d 255\n" % (width, height)).encode() + img.astype("uint8").tobytes())
        lines.append((name, label))
    return lines


def mapper(is_train, sample):
    path, label = sample
    img = load_image(path)
    img = simple_transform(img, SIZE + 4, SIZE, is_train, mean=MEAN)
    return img.astype("float32") / 128.0, label


def reader(lines, is_train):
    def read():
        for line in lines:
            yield line
    return paddle.reader.map_readers(functools.partial(mapper, is_train), read)


def network(img):
    value = np.random.RandomState(0).uniform(-0.3, 0.3, (4, 3, 3, 3)).astype("float32")
    conv = fluid.layers.conv2d(
        img, 4, 3, stride=2, act="relu",
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(value)))
    pool = fluid.layers.pool2d(conv, pool_type="avg", global_pooling=True)
    value = np.random.RandomState(1).uniform(-0.3, 0.3, (4, 3)).astype("float32")
    return fluid.layers.fc(
        pool, 3, act="softmax",
        param_attr=fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(value)))


def preprocess(path):
    """By hand, as servers did."""
    img = resize_short(load_image(path), SIZE + 4)
    img = center_crop(img, SIZE)
    img = to_chw(img).astype("float32")
    img -= np.array(MEAN, "float32").reshape(3, 1, 1)
    return img[np.newaxis] / 128.0


def main():
    random.seed(1)
    np.random.seed(1)
    os.makedirs("train")
    os.makedirs("val")
    train_list, val_list = write_pictures("train", 12, 0), write_pictures("val", 5, 1)

    img = fluid.layers.data("img", [3, SIZE, SIZE])
    label = fluid.layers.data("label", [1], dtype="int64")
    out = network(img)
    loss = fluid.layers.mean(fluid.layers.cross_entropy(out, label))
    acc = fluid.layers.accuracy(out, label)
    fluid.optimizer.Adam(0.05).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    feeder = fluid.DataFeeder([img, label], fluid.CPUPlace())
    for epoch in range(4):
        for data in paddle.batch(reader(train_list, True), 6)():
            cost, right = exe.run(feed=feeder.feed(data), fetch_list=[loss, acc])
        print("epoch %d: loss %.5f, accuracy %.3f" % (epoch, cost[0], right[0]))
    fluid.io.save_inference_model("served", ["img"], [out], exe, model_filename="model", params_filename="params")

    config = AnalysisConfig("served/model", "served/params")
    config.disable_gpu()
    config.disable_glog_info()
    predictor = create_paddle_predictor(config)
    for path, truth in val_list:
        data = preprocess(path)
        result = predictor.run([PaddleTensor(data.copy())])[0].as_ndarray()
        best = result[0].argmax()
        print("%s: %s (%.4f), it is %s" % (os.path.basename(path), CLASSES[best], result[0][best], CLASSES[truth]))
    gray = load_image(val_list[0][0]).max(axis=2)
    print(gray.shape, "mean %.2f" % gray.mean(), simple_transform(gray, 8, 6, False, is_color=False).shape)


if __name__ == "__main__":
    main()
