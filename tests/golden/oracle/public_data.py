"""What the reference reads from tiny files of `public_data_files`."""

import itertools
import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
os.environ["HOME"] = str(folder)

import numpy as np  # noqa: E402
import paddle.dataset as data  # noqa: E402
from public_data_files import make_all  # noqa: E402

FILES = make_all(folder)


def download(url, module_name, md5sum, save_name=None):
    return FILES[url.rpartition("/")[2]]


data.common.download = download
HOME = Path(data.common.DATA_HOME)
(HOME / "wmt16").mkdir(parents=True)
(HOME / "corpora").mkdir()
shutil.copy(FILES["movie_reviews%2Fmovie_reviews.zip"], str(HOME / "corpora"))


def plain(value):
    if isinstance(value, np.ndarray):
        flat = value.ravel()
        return {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "head": [float(v) for v in flat[:5]],
            "sum": float(flat.astype("float64").sum()),
        }
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, dict):
        return [[plain(k), plain(v)] for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return {"kind": type(value).__name__, "items": [plain(v) for v in value]}
    return value


def read(reader):
    return plain(list(itertools.islice(reader(), 12)))


def cases():
    yield "mnist.train", lambda: read(data.mnist.train())
    yield "mnist.test", lambda: read(data.mnist.test())
    for name in ("train10", "test10", "train100", "test100"):
        yield f"cifar.{name}", lambda n=name: read(getattr(data.cifar, n)())
    yield "uci_housing.train", lambda: read(data.uci_housing.train())
    yield "uci_housing.test", lambda: read(data.uci_housing.test())
    pattern = re.compile(r"aclImdb/train/((pos)|(neg))/.*\.txt$")
    words = data.imdb.build_dict(pattern, 0)
    yield "imdb.build_dict", lambda: plain(words)
    yield "imdb.train", lambda: read(data.imdb.train(words))
    yield "imdb.test", lambda: read(data.imdb.test(words))
    ids = data.imikolov.build_dict(1)
    yield "imikolov.build_dict", lambda: plain(ids)
    ngram, seq = data.imikolov.DataType.NGRAM, data.imikolov.DataType.SEQ
    yield "imikolov.train.3", lambda: read(data.imikolov.train(ids, 3))
    yield "imikolov.test.2", lambda: read(data.imikolov.test(ids, 2, ngram))
    yield "imikolov.train.seq", lambda: read(data.imikolov.train(ids, 6, seq))
    yield "imikolov.train.seq0", lambda: read(data.imikolov.train(ids, 0, seq))
    lens = data.movielens
    for name in (
        "get_movie_title_dict", "max_movie_id", "max_user_id", "max_job_id",
        "movie_categories",
    ):  # fmt: skip
        yield f"movielens.{name}", lambda n=name: plain(getattr(lens, n)())
    yield "movielens.train", lambda: read(lens.train())
    yield "movielens.test", lambda: read(lens.test())
    yield "movielens.test.seed", lambda: read(lens.test(rand_seed=3, test_ratio=0.5))
    yield (
        "movielens.user_info",
        lambda: {k: [str(v), plain(v.value())] for k, v in lens.user_info().items()},
    )
    yield (
        "movielens.movie_info",
        lambda: {k: [str(v), plain(v.value())] for k, v in lens.movie_info().items()},
    )
    yield "wmt14.train", lambda: read(data.wmt14.train(5))
    yield "wmt14.test", lambda: read(data.wmt14.test(6))
    yield "wmt14.get_dict", lambda: plain(data.wmt14.get_dict(5))
    yield "wmt14.get_dict.ids", lambda: plain(data.wmt14.get_dict(5, False))
    yield "wmt16.train", lambda: read(data.wmt16.train(5, 6))
    yield "wmt16.test", lambda: read(data.wmt16.test(20, 20))
    yield "wmt16.validation", lambda: read(data.wmt16.validation(6, 5, "de"))
    yield "wmt16.get_dict", lambda: plain(data.wmt16.get_dict("en", 5))
    yield "wmt16.get_dict.words", lambda: plain(data.wmt16.get_dict("de", 6, True))
    yield "conll05.get_dict", lambda: plain(data.conll05.get_dict())
    yield (
        "conll05.get_embedding",
        lambda: Path(data.conll05.get_embedding()).name,
    )
    yield "conll05.test", lambda: read(data.conll05.test())


def sentiment_cases():
    yield "sentiment.get_word_dict", lambda: plain(data.sentiment.get_word_dict())
    yield "sentiment.train", lambda: plain(list(data.sentiment.train()))
    yield "sentiment.test", lambda: plain(list(data.sentiment.test()))


found = {}
for make in (cases, sentiment_cases):
    try:
        for name, case in make():
            try:
                found[name] = case()
            except Exception as error:
                print(name, repr(error), file=sys.stderr)
    except Exception as error:
        print(make, repr(error), file=sys.stderr)
Path(__file__).with_suffix(".json").write_text(json.dumps(found, indent=0))
