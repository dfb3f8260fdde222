"""What the reference makes of small pictures: pictures.npz, pictures.json here.

The .npz holds the files as well (PNG, JPEG, MATLAB), as arrays of bytes.
"""

import io
import json
import os
import tempfile

folder = tempfile.mkdtemp()
os.environ["HOME"] = folder

import cv2  # noqa: E402
import numpy as np  # noqa: E402
import paddle.dataset.common as common  # noqa: E402
import paddle.dataset.flowers as flowers  # noqa: E402
import paddle.dataset.image as image  # noqa: E402
import paddle.dataset.mq2007 as ranked  # noqa: E402
import paddle.dataset.voc2012 as voc  # noqa: E402
import picture_files as files  # noqa: E402
import scipy.io  # noqa: E402
from PIL import Image  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
held, facts = {}, {}


def raw(data):
    return np.frombuffer(data, "uint8")


def png(array, palette=None):
    made = Image.fromarray(array)
    if palette is not None:
        made = Image.fromarray(array, "P")
        made.putpalette(palette)
    out = io.BytesIO()
    made.save(out, "PNG", optimize=True)
    return out.getvalue()


def jpeg(array, **options):
    out = io.BytesIO()
    Image.fromarray(array).save(out, "JPEG", quality=92, **options)
    return out.getvalue()


def sums(array):
    flat = array.ravel()
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "head": [float(v) for v in flat[:: max(1, len(flat) // 7)]],
        "sum": float(flat.astype("float64").sum()),
    }


def encoded():
    one = files.picture(0)
    upright = Image.Exif()
    upright[0x0112] = 6
    yield "png", png(one)
    yield "grey_png", png(one[:, :, 0])
    yield "alpha_png", png(np.dstack([one, one[:, :, 0]]))
    yield "deep_png", png(one[:, :, 0].astype("uint16") * 251)
    yield "palette_png", png(one[:, :, 0] // 16, list(range(250, 202, -1)))
    yield "jpg", jpeg(one)
    yield "turned_jpg", jpeg(one, exif=upright)


def reading():
    for name, data in encoded():
        held["file." + name] = raw(data)
        for colour in (True, False):
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(data)
            kind = "colour" if colour else "grey"
            held[kind + "." + name] = image.load_image(path, colour)
            again = image.load_image_bytes(data, colour)
            assert np.array_equal(again, held[kind + "." + name])


def transforming():
    one = files.picture(1, 40, 31)
    for size in (13, 31, 60):
        held["resize.%d" % size] = image.resize_short(one, size)
        held["resize_grey.%d" % size] = image.resize_short(one[:, :, 1], size)
        floats = one.transpose(1, 0, 2).astype("float32") / 255
        held["resize_float.%d" % size] = image.resize_short(floats, size)
    means = {"none": None, "three": [1.0, 2.5, 3.0], "all": np.full((3, 20, 20), 2.0)}
    for name, mean in means.items():
        for train in (False, True):
            np.random.seed(7)
            made = [
                image.simple_transform(one, 25, 20, train, True, mean) for _ in range(4)
            ]
            held["transform.%s.%d" % (name, train)] = np.stack(made)
    np.random.seed(8)
    held["transform_grey"] = image.simple_transform(one[:, :, 0], 25, 20, True, False)
    np.random.seed(9)
    held["crops"] = np.stack([image.random_crop(one, 12) for _ in range(6)])
    held["centre"] = np.stack([image.center_crop(one, 13), image.center_crop(one, 13)])


def of_flowers():
    pictures = [png(files.picture(10 + i, 20 + i, 26)) for i in range(6)]
    scipy.io.savemat(
        "labels.mat",
        {"labels": np.array([[4, 9, 1, 7, 2, 102]], "uint8")},
        do_compression=True,
    )
    lists = {"trnid": [[5, 1]], "valid": [[2]], "tstid": [[6, 3, 4]]}
    scipy.io.savemat("setid.mat", {k: np.array(v, "int32") for k, v in lists.items()})
    for name in ("labels.mat", "setid.mat"):
        with open(name, "rb") as file:
            held["file." + name] = raw(file.read())
    paths = {
        "102flowers.tgz": files.flowers("f.tgz", pictures),
        "imagelabels.mat": os.path.abspath("labels.mat"),
        "setid.mat": os.path.abspath("setid.mat"),
    }
    for number, data in enumerate(pictures):
        held["file.flower%d" % number] = raw(data)
    flowers.download = common.download = lambda url, *rest: paths[url.split("/")[-1]]
    for part in ("train", "test", "valid"):
        np.random.seed(3)
        reader = getattr(flowers, part)(use_xmap=False)
        facts["flowers." + part] = [[sums(im), label] for im, label in reader()]


def of_voc():
    pictures = [png(files.picture(20 + i, 9, 11)) for i in range(3)]
    classes = [
        png(files.picture(30 + i, 9, 11)[:, :, 0] // 12, list(range(99)))
        for i in range(3)
    ]
    for number, pair in enumerate(zip(pictures, classes)):
        held["file.voc%d" % number], held["file.class%d" % number] = map(raw, pair)
    # it looks for the str of the bytes of a name
    path = files.voc("v.tar", pictures, classes, lambda name: "b'%s'" % name)
    voc.download = common.download = lambda *args: path
    for part in ("train", "test", "val"):
        facts["voc." + part] = [
            [sums(im), sums(kinds)] for im, kinds in getattr(voc, part)()()
        ]


def plain(value):
    if isinstance(value, np.ndarray):
        return sums(value)
    return [plain(v) for v in value] if isinstance(value, tuple) else int(value)


def of_ranking():
    with open("ranking.txt", "w") as file:
        file.write(files.ranking())
    ranked.sys = __import__("sys")
    ranked.__initialize_meta_info__ = lambda: folder
    queries = ranked.load_from_text("ranking.txt")
    facts["ranked.queries"] = [
        [
            q.query_id,
            [
                [d.relevance_score, d.description, d.feature_vector[:3], str(d)[:40]]
                for d in q
            ],
        ]
        for q in queries
    ]
    for kind in ("plain_txt", "pointwise", "pairwise", "listwise"):
        read = ranked.train(filepath="ranking.txt", format=kind)
        facts["ranked." + kind] = [plain(sample) for sample in read]


if __name__ == "__main__":
    os.chdir(folder)
    assert cv2.__version__
    reading()
    transforming()
    of_flowers()
    of_voc()
    of_ranking()
    np.savez_compressed(os.path.join(HERE, "pictures.npz"), **held)
    with open(os.path.join(HERE, "pictures.json"), "w") as file:
        json.dump(facts, file, sort_keys=True)
        file.write("\n")
