"""Tiny files in the formats of public data sets; made here, not taken from them."""

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import numpy as np


def tar(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as file:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return str(path)


def mnist(folder):
    rng = np.random.RandomState(0)
    made = {}
    for part, count in (("train", 200), ("t10k", 100)):
        images = rng.randint(0, 256, (count, 28, 28)).astype("uint8")
        labels = rng.randint(0, 10, count).astype("uint8")
        for kind, head, data in (
            ("images-idx3", struct.pack(">IIII", 2051, count, 28, 28), images),
            ("labels-idx1", struct.pack(">II", 2049, count), labels),
        ):
            name = f"{part}-{kind}-ubyte.gz"
            with gzip.open(folder / name, "wb") as file:
                file.write(head + data.tobytes())
            made[name] = str(folder / name)
    return made


def old_pickle(key, data, labels):
    """{"data": data, key: labels} as Python 2 and its numpy wrote it, protocol 2."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
        + text(b"b")
        + b"\x87R(K\x01K"
        + bytes([len(data)])
        + b"M\x00\x0c\x86cnumpy\ndtype\n"
        + text(b"u1")
        + b"K\x00K\x01\x87R(K\x03"
        + text(b"|")
        + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"
        + struct.pack("<I", data.nbytes)
        + data.tobytes()
        + b"tb"
    )
    numbers = b"](" + b"".join(b"K" + bytes([v]) for v in labels) + b"e"
    return b"\x80\x02}(" + text(b"data") + array + text(key) + numbers + b"u."


def cifar(folder):
    rng = np.random.RandomState(1)

    def batch(key, count):
        data = rng.randint(0, 256, (count, 3072)).astype("uint8")
        labels = rng.randint(0, 10, count).tolist()
        return old_pickle(key, data, labels)

    ten = [
        ("cifar-10-batches-py/data_batch_1", batch(b"labels", 2)),
        ("cifar-10-batches-py/data_batch_2", batch(b"labels", 1)),
        ("cifar-10-batches-py/test_batch", batch(b"labels", 2)),
    ]
    hundred = [
        ("cifar-100-python/train", batch(b"fine_labels", 2)),
        ("cifar-100-python/test", batch(b"fine_labels", 1)),
    ]
    return {
        "cifar-10-python.tar.gz": tar(folder / "cifar-10-python.tar.gz", ten),
        "cifar-100-python.tar.gz": tar(folder / "cifar-100-python.tar.gz", hundred),
    }


def uci_housing(folder):
    rows = np.random.RandomState(2).rand(10, 14).round(4)
    text = "".join(" ".join(map(str, row)) + "\n" for row in rows)
    (folder / "housing.data").write_text(text)
    return {"housing.data": str(folder / "housing.data")}


def imdb(folder):
    texts = {
        "train/pos/0_9": "A fine, fine film! It is good.",
        "train/pos/1_8": "good good GOOD -- isn't it?\n",
        "train/neg/0_1": "bad; the film is bad.",
        "train/unsup/0_0": "not read",
        "test/pos/0_9": "fine good",
        "test/neg/0_2": "bad unknown it",
    }
    members = [(f"aclImdb/{k}.txt", v.encode()) for k, v in texts.items()]
    return {"imdb%2FaclImdb_v1.tar.gz": tar(folder / "aclImdb_v1.tar.gz", members)}


def imikolov(folder):
    train = b" the cat <unk> the dog \n the cat sat on the <unk> \n a dog \n"
    valid = b" the dog sat \n the cat \n"
    base = "./simple-examples/data/ptb"
    members = [(f"{base}.train.txt", train), (f"{base}.valid.txt", valid)]
    path = tar(folder / "simple-examples.tgz", members)
    return {"imikolov%2Fsimple-examples.tgz": path}


def movielens(folder):
    users = ["1::F::1::10::48067", "2::M::56::16::70072", "3::M::25::15::55117"]
    movies = [
        "1::Toy Story (1995)::Animation|Children's|Comedy",
        "2::Jumanji (1995)::Adventure|Children's|Fantasy",
        "5::Caf\xe9 Story (2000)::Drama",
    ]
    ratings = [
        f"{u}::{m}::{(u * m) % 5 + 1}::97830{u}{m}"
        for u in (1, 2, 3)
        for m in (1, 2, 5)
    ] * 3
    path = folder / "ml-1m.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name, lines in (("users", users), ("movies", movies), ("ratings", ratings)):
            text = "".join(f"{line}\n" for line in lines)
            file.writestr(f"ml-1m/{name}.dat", text.encode("latin-1"))
    return {"movielens%2Fml-1m.zip": str(path)}


def wmt14(folder):
    words = "<s>\n<e>\n<unk>\nthe\ncat\nsat\n"
    others = "<s>\n<e>\n<unk>\nle\nchat\nassis\n"
    train = (
        "the cat\tle chat\nthe dog sat\tle chien\n" + "the " * 81 + "\tle\nbad line\n"
    )
    test = "cat sat\tchat assis\n"
    members = [
        ("wmt14/src.dict", words.encode()),
        ("wmt14/trg.dict", others.encode()),
        ("wmt14/train/train", train.encode()),
        ("wmt14/test/test", test.encode()),
    ]
    return {"wmt14.tgz": tar(folder / "wmt14.tgz", members)}


def wmt16(folder):
    train = "the cat sat\tdie Katze\nthe dog\tder Hund\nthe cat\tdie Katze\nno tab\n"
    members = [
        ("wmt16/train", train.encode()),
        ("wmt16/val", b"the dog\tder Hund\n"),
        ("wmt16/test", b"a cat\tKatze die\n"),
    ]
    return {"wmt16.tar.gz": tar(folder / "wmt16.tar.gz", members)}


def conll05(folder):
    words = "The\ncat\nchased\nthe\ndog\nand\nran\n\nDogs\nbark\n\n"
    props = (
        "-\t(A0*\t(A0*\n-\t*)\t*\nchase\t(V*)\t*\n-\t(A1*\t*\n-\t*)\t*)\n-\t*\t*\n"
        "run\t*\t(V*)\n\n-\t(A0*)\nbark\t(V*)\n\n"
    )
    base = "conll05st-release/test.wsj"
    members = [
        (f"{base}/words/test.wsj.words.gz", gzip.compress(words.encode())),
        (f"{base}/props/test.wsj.props.gz", gzip.compress(props.encode())),
    ]
    made = {"conll05st-tests.tar.gz": tar(folder / "conll05st-tests.tar.gz", members)}
    texts = {
        "conll05st%2FwordDict.txt": "The\ncat\nchased\nthe\ndog\nbos\neos\nDogs\n",
        "conll05st%2FverbDict.txt": "chase\nrun\nbark\n",
        "conll05st%2FtargetDict.txt": "B-A0\nI-A0\nB-V\nB-A1\nI-A1\nO\n",
        "conll05st%2Femb": "no numbers are read from this\n",
    }
    for name, text in texts.items():
        path = folder / name.replace("%2F", "_")
        path.write_text(text)
        made[name] = str(path)
    return made


def sentiment(folder):
    texts = {
        "neg/cv000_1.txt": "bad film , isn't it ?\nbad !\n",
        "neg/cv001_2.txt": "so bad it hurts .\n",
        "pos/cv000_3.txt": "good film ! positive\n",
        "pos/cv001_4.txt": "good , good film it is .\n",
    }
    path = folder / "movie_reviews.zip"
    with zipfile.ZipFile(path, "w") as file:
        for name in ("", "neg/", "pos/"):
            file.writestr(f"movie_reviews/{name}", b"")
        for name, text in texts.items():
            file.writestr(f"movie_reviews/{name}", text.encode())
    return {"movie_reviews%2Fmovie_reviews.zip": str(path)}


def make_all(folder):
    """Name in the download's address -> file."""
    folder = Path(folder)
    made = {}
    for make in (
        mnist, cifar, uci_housing, imdb, imikolov, movielens, wmt14, wmt16, conll05,
        sentiment,
    ):  # fmt: skip
        own = folder / make.__name__
        own.mkdir()
        made.update(make(own))
    return made
