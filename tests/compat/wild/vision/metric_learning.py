"""Embeddings by npair, triplet, center, arcmargin or quadruplet-like losses."""

import argparse
import math

import numpy as np
import paddle.fluid as fluid


def triplet_loss(input, label, margin=0.2, samples_each_class=2):
    """The batch holds pairs of a class; the other class's are the negatives."""
    n = 4
    square = fluid.layers.reduce_sum(fluid.layers.square(input), dim=1, keep_dim=True)
    dist = (
        square
        + fluid.layers.transpose(square, [1, 0])
        - 2.0 * fluid.layers.matmul(input, input, transpose_y=True)
    )
    dist = fluid.layers.sqrt(fluid.layers.relu(dist) + 1e-6)
    index = fluid.layers.assign(
        np.array(
            [[i, i ^ 1, j] for i in range(n) for j in range(n) if j // 2 != i // 2],
            dtype="int32",
        )
    )
    a, p, k = fluid.layers.split(index, 3, dim=1)
    pos = fluid.layers.gather_nd(dist, fluid.layers.concat([a, p], axis=1))
    neg = fluid.layers.gather_nd(dist, fluid.layers.concat([a, k], axis=1))
    zero = fluid.layers.fill_constant([1], "float32", margin)
    return fluid.layers.reduce_mean(fluid.layers.relu(pos - neg + zero))


def arc_margin(input, label, classes, margin=0.3, scale=8.0):
    norm = fluid.layers.sqrt(fluid.layers.reduce_sum(fluid.layers.square(input), dim=1))
    input = fluid.layers.elementwise_div(input, norm, axis=0)
    weight = fluid.layers.create_parameter(
        shape=[input.shape[1], classes], dtype="float32", name="arc_w"
    )
    w_norm = fluid.layers.sqrt(
        fluid.layers.reduce_sum(fluid.layers.square(weight), dim=0)
    )
    weight = fluid.layers.elementwise_div(weight, w_norm, axis=1)
    cosine = fluid.layers.mul(input, weight)
    sine = fluid.layers.sqrt(1.0 - fluid.layers.square(cosine) + 1e-6)
    phi = cosine * math.cos(margin) - sine * math.sin(margin)
    # as far as the angle allows, otherwise by the same amount everywhere
    easy = fluid.layers.cast(cosine > math.cos(math.pi - margin), "float32")
    phi = easy * phi + (1.0 - easy) * (cosine - math.sin(margin) * margin)
    one_hot = fluid.layers.one_hot(label, classes)
    output = fluid.layers.elementwise_mul(one_hot, phi) + (1.0 - one_hot) * cosine
    return fluid.layers.mean(
        fluid.layers.softmax_with_cross_entropy(output * scale, label)
    )


def center(input, label, classes):
    logit = fluid.layers.fc(input, classes)
    ce = fluid.layers.mean(fluid.layers.softmax_with_cross_entropy(logit, label))
    cent = fluid.layers.center_loss(
        input=input,
        label=label,
        num_classes=classes,
        alpha=0.3,
        param_attr=fluid.initializer.ConstantInitializer(value=0.1),
    )
    return ce + 0.1 * fluid.layers.mean(cent)


def npair(input, label):
    anchor, positive = fluid.layers.split(input, 2, dim=0)
    labels = fluid.layers.split(fluid.layers.reshape(label, [4]), 2, dim=0)[0]
    return fluid.layers.npair_loss(
        anchor, positive, fluid.layers.cast(labels, "float32"), l2_reg=0.02
    )


def main(name, classes=3):
    image = fluid.layers.data(name="image", shape=[4, 6, 6], dtype="float32")
    label = fluid.layers.data(
        name="label", shape=[4, 1], dtype="int64", append_batch_size=False
    )
    trunk = fluid.layers.conv2d(image, 6, 3, padding="SAME", act="relu")
    trunk = fluid.layers.group_norm(trunk, groups=2, param_attr='gn_w', bias_attr='gn_b')
    emb = fluid.layers.fc(fluid.layers.adaptive_pool2d(trunk, [2, 2], "avg"), 5)
    if name == "triplet":
        loss = triplet_loss(fluid.layers.l2_normalize(emb, axis=1), label)
    elif name == "arcmargin":
        loss = arc_margin(emb, label, classes)
    elif name == "center":
        loss = center(emb, label, classes)
    else:
        loss = npair(emb, label)
    fluid.optimizer.LarsMomentum(0.5, 0.9, lars_coeff=0.01).minimize(loss)
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fluid.default_startup_program())
    rng = np.random.RandomState(0)
    for p in fluid.default_main_program().all_parameters():
        if len(p.shape) > 1 and "center" not in p.name:
            fluid.global_scope().find_var(p.name).get_tensor().set(
                (rng.randn(*p.shape) * 0.3).astype("float32"), fluid.CPUPlace()
            )
    first = {"npair": [0, 1, 0, 1]}.get(name, [0, 0, 1, 1])
    for i in range(8):
        labels = (np.array(first) + i) % classes
        images = rng.rand(4, 4, 6, 6) + 0.5 * labels.reshape(-1, 1, 1, 1)
        value = exe.run(
            feed={
                "image": images.astype("float32"),
                "label": labels.reshape(-1, 1).astype("int64"),
            },
            fetch_list=[loss.name],
        )[0]
        print(f"iter {i} {name} {np.asarray(value).item():.6f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("loss", choices=["npair", "triplet", "center", "arcmargin"])
    main(parser.parse_args().loss)
