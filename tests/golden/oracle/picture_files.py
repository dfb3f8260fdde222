"""Tiny picture data sets; made here, not taken from them. Used by `pictures`."""

import io
import tarfile

import numpy as np

WORDS = "#docid = GX%03d-%d inc = 1 prob = 0.%d"


def picture(seed, height=34, width=45):
    """Smooth colours with some noise, uint8 [height, width, 3]."""
    rng = np.random.RandomState(seed)
    rows, columns = np.mgrid[:height, :width]
    waves = [
        np.sin(rows / (3.0 + k) + seed) * np.cos(columns / 5.0 + k) for k in range(3)
    ]
    noise = rng.randint(-20, 21, (height, width, 3))
    return np.clip(127 + 100 * np.dstack(waves) + noise, 0, 255).astype("uint8")


def tar(path, members, mode="w"):
    with tarfile.open(path, mode) as file:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return str(path)


def flowers(path, pictures):
    """pictures: the bytes of files, the first of which is number 1."""
    members = [
        ("jpg/image_%05d.jpg" % number, data) for number, data in enumerate(pictures, 1)
    ]
    return tar(path, members, "w:gz")


def voc(path, pictures, classes, written=str):
    """written: how the members spell a name of the lists."""
    members, names = [], ["x%d" % i for i in range(len(pictures))]
    home = "VOCdevkit/VOC2012/"
    for name, picture_bytes, class_bytes in zip(names, pictures, classes):
        spelt = written(name)
        members.append((home + "JPEGImages/%s.jpg" % spelt, picture_bytes))
        members.append((home + "SegmentationClass/%s.png" % spelt, class_bytes))
    lists = {"trainval": names, "train": names[:-1], "val": names[-1:]}
    for kind, held in lists.items():
        text = "".join(name + "\n" for name in held)
        members.append((home + "ImageSets/Segmentation/%s.txt" % kind, text.encode()))
    return tar(path, members)


def ranking():
    """The lines of a file of MQ2007, one of them cut off."""
    rng = np.random.RandomState(4)
    lines = []
    for number, grades in (
        (10, (0, 1, 2, 1)),
        (11, (0, 0)),
        (12, (1, 2)),
        (10, (0, 1)),
    ):
        for place, grade in enumerate(grades):
            values = " ".join("%d:%f" % (i + 1, rng.rand()) for i in range(46))
            words = WORDS % (number, place, place)
            lines.append("%d qid:%d %s %s" % (grade, number, values, words))
    return "\n".join(lines[:3] + [lines[3][:90]] + lines[3:]) + "\n"
