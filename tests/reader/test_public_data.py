"""Public data sets, read from tiny files: the samples are the reference's."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import itertools
import json
import re
import urllib.error
from pathlib import Path

import numpy as np
import pytest

from fluidx import dataset as data
from fluidx import reader as readers

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
EXPECTED = json.loads((ORACLE / "public_data.json").read_text())


def _builder():
    path = ORACLE / "public_data_files.py"
    spec = importlib.util.spec_from_file_location("public_data_files", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return _builder().make_all(tmp_path_factory.mktemp("public"))


@pytest.fixture(autouse=True)
def downloads(files, monkeypatch):
    def download(url, module_name, md5sum, save_name=None):
        return files[url.rpartition("/")[2]]

    monkeypatch.setattr(data.common, "download", download)


def plain(value):
    if isinstance(value, np.ndarray):
        flat = value.ravel()
        return {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "head": [float(v) for v in flat[:5]],
            "sum": float(flat.astype("float64").sum()),
        }
    if isinstance(value, bytes):
        return {"bytes": value.decode("latin-1")}
    if isinstance(value, dict):
        return [[plain(k), plain(v)] for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return {"kind": type(value).__name__, "items": [plain(v) for v in value]}
    return value


def same(mine, theirs):
    if isinstance(theirs, dict) and "sum" in theirs:
        assert mine["dtype"] == theirs["dtype"]
        assert mine["shape"] == theirs["shape"]
        assert mine["head"] == pytest.approx(theirs["head"], rel=1e-6, abs=1e-6)
        assert mine["sum"] == pytest.approx(theirs["sum"], rel=1e-6, abs=1e-4)
    elif isinstance(theirs, dict):
        assert mine.keys() == theirs.keys()
        for key in theirs:
            same(mine[key], theirs[key])
    elif isinstance(theirs, list):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs):
            same(a, b)
    else:
        assert mine == theirs


def check(name, value):
    same(plain(value), EXPECTED[name])


def first(reader):
    return list(itertools.islice(reader(), 12))


def test_mnist():
    check("mnist.train", first(data.mnist.train()))
    check("mnist.test", first(data.mnist.test()))
    assert sum(1 for _ in data.mnist.train()()) == 200


@pytest.mark.parametrize("name", ["train10", "test10", "train100", "test100"])
def test_cifar(name):
    check(f"cifar.{name}", first(getattr(data.cifar, name)()))


def test_cifar_again_and_again():
    once = first(data.cifar.test10())
    cycled = readers.firstn(data.cifar.test10(cycle=True), 5)
    labels = [label for _, label in cycled()]
    assert labels == ([label for _, label in once] * 3)[:5]


def test_uci_housing():
    check("uci_housing.train", first(data.uci_housing.train()))
    check("uci_housing.test", first(data.uci_housing.test()))


def test_imdb():
    pattern = re.compile(r"aclImdb/train/((pos)|(neg))/.*\.txt$")
    words = data.imdb.build_dict(pattern, 0)
    check("imdb.build_dict", words)
    check("imdb.train", first(data.imdb.train(words)))
    check("imdb.test", first(data.imdb.test(words)))
    assert data.imdb.word_dict() == {"<unk>": 0}


def test_imikolov():
    ids = data.imikolov.build_dict(1)
    check("imikolov.build_dict", ids)
    ngram, seq = data.imikolov.DataType.NGRAM, data.imikolov.DataType.SEQ
    check("imikolov.train.3", first(data.imikolov.train(ids, 3)))
    check("imikolov.test.2", first(data.imikolov.test(ids, 2, ngram)))
    check("imikolov.train.seq", first(data.imikolov.train(ids, 6, seq)))
    check("imikolov.train.seq0", first(data.imikolov.train(ids, 0, seq)))
    with pytest.raises(ValueError, match="no data type 7"):
        data.imikolov.train(ids, 3, 7)


def named(samples):
    """Samples of movielens with names for numbers, whose order is not the same."""
    categories = {i: name for name, i in data.movielens.movie_categories().items()}
    words = {i: name for name, i in data.movielens.get_movie_title_dict().items()}
    return [renamed(sample, categories, words) for sample in samples]


def renamed(sample, categories, words):
    *user, kinds, title, score = sample
    return [*user, [categories[i] for i in kinds], [words[i] for i in title], score]


def listed(value):
    return [listed(v) for v in value["items"]] if isinstance(value, dict) else value


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("movielens.train", lambda: data.movielens.train()),
        ("movielens.test", lambda: data.movielens.test()),
        (
            "movielens.test.seed",
            lambda: data.movielens.test(rand_seed=3, test_ratio=0.5),
        ),
    ],
)
def test_movielens_samples(name, read):
    categories = {i: n for n, i in EXPECTED["movielens.movie_categories"]}
    words = {i: n for n, i in EXPECTED["movielens.get_movie_title_dict"]}
    theirs = [renamed(s, categories, words) for s in listed(EXPECTED[name])]
    before = np.random.get_state()[1].tolist()
    assert named(first(read())) == theirs
    assert np.random.get_state()[1].tolist() == before


def test_movielens_facts():
    lens = data.movielens
    for name in ("max_movie_id", "max_user_id", "max_job_id"):
        check(f"movielens.{name}", getattr(lens, name)())
    for name in ("movie_categories", "get_movie_title_dict"):
        found, theirs = getattr(lens, name)(), EXPECTED[f"movielens.{name}"]
        assert set(found) == {n for n, _ in theirs}
        assert sorted(found.values()) == list(range(len(theirs)))
    assert lens.movie_categories()["Animation"] == 0
    users = {str(k): str(v) for k, v in lens.user_info().items()}
    assert users == {k: v[0] for k, v in EXPECTED["movielens.user_info"].items()}
    movies = {str(k): str(v) for k, v in lens.movie_info().items()}
    assert movies == {k: v[0] for k, v in EXPECTED["movielens.movie_info"].items()}


def test_wmt14():
    check("wmt14.train", first(data.wmt14.train(5)))
    check("wmt14.test", first(data.wmt14.test(6)))
    check("wmt14.get_dict", data.wmt14.get_dict(5))
    check("wmt14.get_dict.ids", data.wmt14.get_dict(5, False))


def test_wmt16():
    check("wmt16.train", first(data.wmt16.train(5, 6)))
    check("wmt16.test", first(data.wmt16.test(20, 20)))
    check("wmt16.validation", first(data.wmt16.validation(6, 5, "de")))
    check("wmt16.get_dict", data.wmt16.get_dict("en", 5))
    check("wmt16.get_dict.words", data.wmt16.get_dict("de", 6, True))
    with pytest.raises(ValueError, match="'fr'"):
        data.wmt16.train(5, 5, "fr")


def test_conll05():
    words, verbs, labels = data.conll05.get_dict()
    theirs = listed(EXPECTED["conll05.get_dict"])
    assert list(words.items()) == [tuple(p) for p in theirs[0]]
    assert list(verbs.items()) == [tuple(p) for p in theirs[1]]
    assert sorted(labels) == sorted(n for n, _ in theirs[2])
    assert list(labels)[:2] == ["B-A0", "I-A0"]
    assert Path(data.conll05.get_embedding()).name == "conll05st_emb"
    mine = [[list(v) for v in sample] for sample in data.conll05.test()()]
    expected = listed(EXPECTED["conll05.test"])
    assert [s[:8] for s in mine] == [s[:8] for s in expected]
    name_of, their_name = (
        {i: n for n, i in labels.items()},
        {i: n for n, i in theirs[2]},
    )
    assert [[name_of[i] for i in s[8]] for s in mine] == [
        [their_name[i] for i in s[8]] for s in expected
    ]


def test_sentiment(monkeypatch):
    check("sentiment.get_word_dict", data.sentiment.get_word_dict())
    check("sentiment.train", list(data.sentiment.train()))
    check("sentiment.test", list(data.sentiment.test()))
    monkeypatch.setattr(data.sentiment, "NUM_TRAINING_INSTANCES", 3)
    assert [label for _, label in data.sentiment.test()] == [1]


def test_readers_of_ones_own_files(files):
    words = data.imdb.build_dict(re.compile(r"aclImdb/train/((pos)|(neg))/.*\.txt$"), 0)
    patterns = [re.compile(rf"aclImdb/train/{k}/.*\.txt$") for k in ("pos", "neg")]
    check("imdb.train", first(data.imdb.reader_creator(*patterns, words)))
    ids, name = data.imikolov.build_dict(1), "./simple-examples/data/ptb.train.txt"
    check("imikolov.train.3", first(data.imikolov.reader_creator(name, ids, 3, 1)))
    (path,) = [p for name, p in files.items() if "wmt14" in p]
    check("wmt14.train", first(data.wmt14.reader_creator(path, "train/train", 5)))
    (path,) = [p for name, p in files.items() if "wmt16" in p]
    read = data.wmt16.reader_creator(path, "wmt16/train", 5, 6, "en")
    check("wmt16.train", first(read))


def test_counting_words():
    counts = data.imikolov.word_count([b"a b a\n", b"c\n"])
    assert counts == {b"a": 2, b"b": 1, b"c": 1, "<s>": 2, "<e>": 2}
    again = data.imikolov.word_count([b"a"], {b"a": 4})
    assert again == {b"a": 5, "<s>": 1, "<e>": 1}


def test_public_names_are_those_of_the_index():
    api = json.loads((ORACLE.parent / "dataset_api.json").read_text())
    for module, members in api.items():
        for name, text in members.items():
            mine = getattr(getattr(data, module), name)
            if text:
                scope = {}
                exec(f"def recorded{text}: ...", scope)
                theirs = inspect.signature(scope["recorded"]).parameters.values()
                found = inspect.signature(mine).parameters.values()
                assert [(p.name, p.kind, p.default) for p in found] == [
                    (p.name, p.kind, p.default) for p in theirs
                ], f"{module}.{name}"
    with pytest.raises(AttributeError, match="nope"):
        _ = data.nope


# ------------------------------------------------ files


@pytest.fixture
def home(monkeypatch, tmp_path):
    """The real `download`, with a folder of its own."""
    spec = importlib.util.find_spec("fluidx.dataset.common")
    common = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(common)
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path / "home"))
    common.source = tmp_path / "some.data"
    common.source.write_bytes(b"the data")
    common.url = common.source.as_uri()
    common.md5 = hashlib.md5(b"the data").hexdigest()
    return common


def test_download_once(home, capfd):
    path = home.download(home.url, "mod", home.md5)
    assert Path(path) == Path(home.DATA_HOME) / "mod" / "some.data"
    assert Path(path).read_bytes() == b"the data"
    assert home.md5file(path) == home.md5
    home.source.unlink()
    assert home.download(home.url, "mod", home.md5) == path
    assert [p.name for p in Path(path).parent.iterdir()] == ["some.data"]


def test_a_file_that_was_put_there_is_used(home):
    folder = Path(home.DATA_HOME) / "mod"
    folder.mkdir(parents=True)
    (folder / "x").write_bytes(b"the data")
    url = "http://127.0.0.1:1/nothing"
    assert home.download(url, "mod", home.md5, "x") == str(folder / "x")


def test_without_a_network(home, capfd):
    with pytest.raises(home.DownloadError) as failed:
        home.download("http://127.0.0.1:1/some.data", "mod", "abc")
    assert isinstance(failed.value.__cause__, urllib.error.URLError)
    text = str(failed.value)
    assert "'some.data' (MD5 abc)" in text
    assert f"folder {Path(home.DATA_HOME) / 'mod'}" in text


def test_a_wrong_file_is_refused(home, capfd):
    with pytest.raises(home.DownloadError, match=f"its MD5 is {home.md5}"):
        home.download(home.url, "mod", "abc")
    assert list((Path(home.DATA_HOME) / "mod").iterdir()) == []
