"""Pictures and picture data sets: what the reference makes of the same small files."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fluidx import dataset as data
from fluidx.dataset import common, flowers, image, mq2007, resize, samples, voc2012

ORACLE = Path(__file__).parents[1] / "golden" / "oracle"
FACTS = json.loads((ORACLE / "pictures.json").read_text())
with np.load(ORACLE / "pictures.npz") as _file:
    HELD: dict[str, Any] = {name: _file[name] for name in _file.files}

#: what stands in for OpenCV
pytest.importorskip("PIL", reason="reading pictures needs Pillow")


def files_module() -> ModuleType:
    path = ORACLE / "picture_files.py"
    spec = importlib.util.spec_from_file_location("picture_files", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FILES = files_module()


def file_bytes(name: str) -> bytes:
    return HELD[f"file.{name}"].tobytes()  # type: ignore[no-any-return]


def sums(array: Any) -> dict[str, Any]:
    flat = array.ravel()
    return {
        "dtype": str(array.dtype),
        "shape": list(array.shape),
        "head": [float(v) for v in flat[:: max(1, len(flat) // 7)]],
        "sum": float(flat.astype("float64").sum()),
    }


def plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return sums(value)
    return [plain(v) for v in value] if isinstance(value, tuple) else int(value)


# ---------------------------------------------------------------- reading


@pytest.mark.parametrize(
    "name", [n for n in HELD if n.startswith(("colour.", "grey."))]
)
def test_reading(name: str, tmp_path: Path) -> None:
    kind, _, file = name.partition(".")
    path = tmp_path / file
    path.write_bytes(file_bytes(file))
    colour = kind == "colour"
    found = image.load_image(str(path), colour)
    assert (found.dtype, found.shape) == (np.uint8, HELD[name].shape)
    # another libjpeg may round another way
    limit = 2 if file.endswith("jpg") else 0
    assert np.abs(found.astype(int) - HELD[name]).max() <= limit
    again = image.load_image_bytes(path.read_bytes(), colour)
    np.testing.assert_array_equal(again, found)


def test_grey_of_other_formats() -> None:
    """ITU-R BT.601: 0.299, 0.587 and 0.114 of red, green and blue."""
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype("uint8")
    found = image.load_image_bytes(b"P6 7 5 255\n" + pixels.tobytes(), False)
    exact = pixels.astype("float64") @ [0.299, 0.587, 0.114]
    np.testing.assert_allclose(found, exact, atol=0.51)
    colours = image.load_image_bytes(b"P6 7 5 255\n" + pixels.tobytes())
    np.testing.assert_array_equal(colours, pixels[:, :, ::-1])


def test_what_is_no_picture(tmp_path: Path) -> None:
    path = tmp_path / "x.jpg"
    with pytest.raises(FileNotFoundError):
        image.load_image(str(path))
    path.write_bytes(b"text")
    with pytest.raises(ValueError, match=r"x.jpg'.*knows no such picture"):
        image.load_image(str(path))
    with pytest.raises(ValueError, match="given bytes: an empty file"):
        image.load_image_bytes(b"")


def test_neither_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "find_spec", lambda name: None)
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install opencv-python, or pip inst"):
        image.load_image_bytes(file_bytes("png"))


def test_opencv_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cv2(ModuleType):
        def imdecode(self, raw: Any, flag: int) -> Any:
            return None if bytes(raw) == b"bad" else np.full((2, 3), flag, "uint8")

    monkeypatch.setitem(sys.modules, "cv2", Cv2("cv2"))
    monkeypatch.setattr(image, "find_spec", lambda name: name)
    assert image.load_image_bytes(b"good", True).tolist() == [[1, 1, 1]] * 2
    assert image.load_image_bytes(b"good", False).tolist() == [[0, 0, 0]] * 2
    with pytest.raises(ValueError, match="OpenCV knows no such picture"):
        image.load_image_bytes(b"bad")


# ---------------------------------------------------------------- shapes

ONE = FILES.picture(1, 40, 31)


@pytest.mark.parametrize("size", [13, 31, 60])
def test_resizing_is_opencvs_to_the_last_bit(size: int) -> None:
    found = image.resize_short(ONE, size)
    np.testing.assert_array_equal(found, HELD[f"resize.{size}"])
    found = image.resize_short(ONE[:, :, 1], size)
    np.testing.assert_array_equal(found, HELD[f"resize_grey.{size}"])
    floats = ONE.transpose(1, 0, 2).astype("float32") / 255
    found = image.resize_short(floats, size)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, HELD[f"resize_float.{size}"], atol=1e-6)


def keys(x: float) -> float:
    """The kernel of Keys (1981) with a = -0.75."""
    x, a = abs(x), -0.75
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a if x < 2 else 0.0


def test_resizing_by_the_formula() -> None:
    row = np.array([[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0]])
    found = resize.cubic(row, 1, 11)[0]
    for place, value in enumerate(found):
        at = (place + 0.5) * 7 / 11 - 0.5
        near = range(int(np.floor(at)) - 1, int(np.floor(at)) + 3)
        exact = sum(row[0, min(max(i, 0), 6)] * keys(at - i) for i in near)
        assert value == pytest.approx(exact, rel=1e-5)
    with pytest.raises(TypeError, match="int64"):
        resize.cubic(row.astype("int64"), 2, 2)


def test_a_picture_of_that_size_is_copied() -> None:
    found = resize.cubic(ONE, 40, 31)
    np.testing.assert_array_equal(found, ONE)
    assert not np.shares_memory(found, ONE)


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("name", ["none", "three", "all"])
def test_transforming(name: str, train: bool) -> None:
    means = {"none": None, "three": [1.0, 2.5, 3.0], "all": np.full((3, 20, 20), 2.0)}
    np.random.seed(7)
    found = np.stack(
        [
            image.simple_transform(ONE, 25, 20, train, True, means[name])
            for _ in range(4)
        ]
    )
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, HELD[f"transform.{name}.{int(train)}"])


def test_cropping() -> None:
    np.random.seed(8)
    grey = image.simple_transform(ONE[:, :, 0], 25, 20, True, False)
    np.testing.assert_array_equal(grey, HELD["transform_grey"])
    np.random.seed(9)
    crops = np.stack([image.random_crop(ONE, 12) for _ in range(6)])
    np.testing.assert_array_equal(crops, HELD["crops"])
    np.testing.assert_array_equal(image.center_crop(ONE, 13), HELD["centre"][0])
    np.testing.assert_array_equal(image.left_right_flip(ONE), ONE[:, ::-1])
    assert image.to_chw(ONE).shape == (3, 40, 31)
    assert image.to_chw(ONE, (1, 2, 0)).shape == (31, 3, 40)


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(file_bytes("png"))
    found = image.load_and_transform(str(path), 25, 20, False, mean=[1.0, 2.0, 3.0])
    whole = image.simple_transform(HELD["colour.png"], 25, 20, False)
    np.testing.assert_allclose(found + np.array([1, 2, 3])[:, None, None], whole)


def test_what_does_not_fit() -> None:
    for crop in (image.center_crop, image.random_crop):
        with pytest.raises(ValueError, match=r"no 32 x 32 in a picture of \(40, 31\)"):
            crop(ONE, 32)
    with pytest.raises(ValueError, match="3 axes wanted"):
        image.to_chw(ONE[:, :, 0])
    with pytest.raises(ValueError, match=r"a number for each colour or \[3, 20, 20\]"):
        image.simple_transform(ONE, 25, 20, False, mean=1.5)


def test_batches_of_an_archive(tmp_path: Path) -> None:
    members = [(f"im{i}", bytes([i]) * 3) for i in range(5)]
    path = FILES.tar(tmp_path / "x.tar", members)
    listing = image.batch_images_from_tar(
        path, "some", {"im3": 30, "im0": 0, "im4": 4}, 2
    )
    assert listing == f"{path}_batch/some.txt"
    paths = Path(listing).read_text().split()
    assert paths == [f"{path}_batch/some/batch_{i}" for i in range(2)]
    batches = [samples.load(io.BytesIO(Path(p).read_bytes())) for p in paths]
    assert batches == [
        {"label": [0, 30], "data": [b"\0\0\0", b"\3\3\3"]},
        {"label": [4], "data": [b"\4\4\4"]},
    ]
    Path(path).unlink()  # they are made once
    assert image.batch_images_from_tar(path, "some", {}) == listing


# ---------------------------------------------------------------- data sets


@pytest.fixture
def flower_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = [file_bytes(f"flower{i}") for i in range(6)]
    paths = {flowers.DATA_URL: FILES.flowers(tmp_path / "f.tgz", pictures)}
    for url, name in (
        (flowers.LABEL_URL, "labels.mat"),
        (flowers.SETID_URL, "setid.mat"),
    ):
        (tmp_path / name).write_bytes(file_bytes(name))
        paths[url] = str(tmp_path / name)
    monkeypatch.setattr(common, "download", lambda url, *rest: paths[url])


@pytest.mark.parametrize("part", ["train", "test", "valid"])
def test_flowers(flower_files: None, part: str) -> None:
    np.random.seed(3)
    found = list(getattr(flowers, part)(use_xmap=False)())
    assert [[sums(im), label] for im, label in found] == FACTS[f"flowers.{part}"]


def test_flowers_in_threads_and_again(flower_files: None) -> None:
    labels = [label for _, label in FACTS["flowers.train"]]
    read = flowers.train(mapper=lambda sample: sample)
    assert sorted(label for _, label in read()) == sorted(labels)
    assert {type(raw) for raw, _ in read()} == {bytes}
    again = flowers.train(mapper=lambda s: s[1], use_xmap=False, cycle=True)()
    assert [next(again) for _ in range(7)] == (labels * 3)[:7]


@pytest.mark.parametrize("part", ["train", "test", "val"])
def test_voc2012(part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(file_bytes(f"voc{i}"), file_bytes(f"class{i}")) for i in range(3)]
    path = FILES.voc(tmp_path / "v.tar", *zip(*pairs))
    monkeypatch.setattr(common, "download", lambda *args: path)
    found = [[sums(im), sums(kinds)] for im, kinds in getattr(voc2012, part)()()]
    assert found == FACTS[f"voc.{part}"]


@pytest.fixture
def ranking(tmp_path: Path) -> str:
    path = tmp_path / "ranking.txt"
    path.write_text(FILES.ranking())
    return str(path)


def test_mq2007_queries(ranking: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = mq2007.load_from_text(ranking)
    assert "expected 48 parts, came 10" in capsys.readouterr().err
    assert [
        [
            q.query_id,
            [
                [d.relevance_score, d.description, d.feature_vector[:3], str(d)[:40]]
                for d in q
            ],
        ]
        for q in found
    ] == FACTS["ranked.queries"]
    assert [len(q) for q in mq2007.query_filter(found)] == [4, 2, 2]


@pytest.mark.parametrize("kind", ["plain_txt", "pointwise", "pairwise", "listwise"])
def test_mq2007_samples(
    kind: str, ranking: str, capsys: pytest.CaptureFixture[str]
) -> None:
    read: Any = mq2007.train(filepath=ranking, format=kind)
    assert [plain(sample) for sample in read] == FACTS[f"ranked.{kind}"]
    one = mq2007.Query(3, 1, [0.5])
    assert [grade for grade, _ in mq2007.gen_point([one])] == [1]


def test_mq2007_errors(ranking: str) -> None:
    with pytest.raises(ValueError, match="not 'zzz'"):
        mq2007.test(filepath=ranking, format="zzz")
    queries = mq2007.QueryList([mq2007.Query(3)])
    with pytest.raises(ValueError, match="of query 3: got a document of query 4"):
        queries._add_query(mq2007.Query(4))


def test_mq2007_unpacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = tmp_path / "MQ2007" / "x.rar"
    archive.parent.mkdir()
    archive.write_text(FILES.ranking().replace("qid:11", "qid:5"))
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    monkeypatch.setattr(mq2007, "download", lambda *args: str(archive))
    monkeypatch.setattr(mq2007.shutil, "which", lambda name: None)
    with pytest.raises(RuntimeError, match=r"unpack '.*x.rar' into '.*MQ2007'"):
        mq2007.train()
    wanted = "MQ2007/Fold1/train.txt"

    def unpack(words: list[str], cwd: str, check: bool) -> None:
        assert words == ["bsdtar", "-xf", str(archive)]
        (Path(cwd) / wanted).parent.mkdir(parents=True)
        archive.rename(Path(cwd) / wanted)

    monkeypatch.setattr(mq2007.shutil, "which", lambda name: name == "bsdtar" or None)
    monkeypatch.setattr(mq2007.subprocess, "run", unpack)
    assert sum(1 for _ in mq2007.train(format="listwise")) == 3
    assert sum(1 for _ in mq2007.train(format="listwise")) == 3  # it is there now


@pytest.mark.parametrize("module", [flowers, voc2012, mq2007])
def test_offline(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    def no_network(*args: Any, **options: Any) -> Any:
        raise OSError("no network")

    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    monkeypatch.setattr(common.urllib.request, "urlopen", no_network)
    with pytest.raises(common.DownloadError, match=r"\(MD5 [0-9a-f]{32}\).*yourself"):
        module.fetch()


# ---------------------------------------------------------------- files of samples


def test_splitting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    common.split(lambda: iter(range(10)), 4, suffix="p-%05d.pickle")
    held = [
        samples.load(io.BytesIO(p.read_bytes())) for p in sorted(tmp_path.iterdir())
    ]
    assert held == [[0, 1, 2, 3, 4], [5, 6, 7, 8], [9]]  # as the reference splits
    read = [common.cluster_files_reader("p-*.pickle", 2, i) for i in range(2)]
    assert list(read[0]()) == [0, 1, 2, 3, 4, 9]
    assert list(read[1]()) == [5, 6, 7, 8]
    assert capsys.readouterr().out.split("\n")[0] == "append file: p-00000.pickle"
    common.split(lambda: iter("ab"), 9, "t%d", lambda lines, f: f.write("".join(lines)))
    assert list(common.cluster_files_reader("t0", 1, 0, lambda f: [f.read()])()) == [
        "ab"
    ]
    with pytest.raises(TypeError, match="dumper should be callable"):
        common.split(lambda: iter("ab"), 9, dumper=3)  # type: ignore[arg-type]


def test_folders(tmp_path: Path) -> None:
    common.must_mkdirs(str(tmp_path / "a" / "b"))
    common.must_mkdirs(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()


def test_fetching_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[str] = []

    def note(url: str, module: str, *rest: Any) -> str:
        asked.append(module)
        return str(tmp_path / "empty")

    (tmp_path / "empty").write_text("")
    monkeypatch.setattr(common, "download", note)
    monkeypatch.setattr(mq2007, "download", note)
    common.fetch_all()
    assert {"mnist", "flowers", "voc2012", "MQ2007", "wmt16", "conll05st"} <= {*asked}


def test_the_checksums_are_md5() -> None:
    for module in (flowers, voc2012, mq2007):
        sums_of = [v for k, v in vars(module).items() if k.endswith("MD5")]
        assert sums_of
        assert {len(s) for s in sums_of} == {len(hashlib.md5(b"").hexdigest())}
    assert data.image is image
