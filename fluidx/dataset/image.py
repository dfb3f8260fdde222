"""Pictures for networks: reading, resizing, cropping (``paddle.dataset.image``).

A picture is an array, uint8, [height, width, 3] in the order blue, green, red, or
[height, width] in grey. Reading files needs OpenCV (``opencv-python``) or Pillow, the
rest numpy only. Resizing is OpenCV's bicubic interpolation, to the last bit.
"""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from . import samples
from .resize import cubic

__all__ = [
    "batch_images_from_tar",
    "center_crop",
    "left_right_flip",
    "load_and_transform",
    "load_image",
    "load_image_bytes",
    "random_crop",
    "resize_short",
    "simple_transform",
    "to_chw",
]

#: whether OpenCV is there: 0, and what the reference's look for it printed
retcode = int(find_spec("cv2") is None)
out, err = b"", b""


# ---------------------------------------------------------------- reading


def load_image(file: str, is_color: bool = True) -> Any:
    """The picture in a file; `is_color` False: in grey.

    FileNotFoundError; ValueError: it is no picture. ImportError: neither OpenCV nor
    Pillow is installed.
    """
    with open(file, "rb") as opened:
        return _decoded(opened.read(), is_color, repr(file))


def load_image_bytes(bytes: bytes, is_color: bool = True) -> Any:
    """The picture in the bytes of a file; see `load_image`."""
    return _decoded(bytes, is_color, "the given bytes")


def _decoded(data: bytes, is_color: bool, what: str) -> Any:
    if not data:
        raise ValueError(f"{what}: an empty file is no picture")
    if find_spec("cv2") is not None:
        import cv2

        found = cv2.imdecode(np.frombuffer(data, "uint8"), int(is_color))
        if found is None:
            raise ValueError(f"{what}: OpenCV knows no such picture")
        return found
    image = opened(data, what)
    return _colours(image) if is_color else _grey(image)


def opened(data: bytes, what: str) -> Any:
    """The Pillow image of the bytes of a file."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise ImportError(
            "reading pictures needs OpenCV or Pillow: pip install opencv-python, or "
            "pip install pillow",
            name="PIL",
        ) from None
    try:
        return Image.open(io.BytesIO(data))
    except UnidentifiedImageError:
        raise ValueError(f"{what}: Pillow knows no such picture") from None


def _upright(image: Any) -> Any:
    """Turned as its camera said, as OpenCV does."""
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def _colours(image: Any) -> Any:
    if image.mode.startswith("I;16"):
        return np.repeat(_grey(image)[:, :, None], 3, axis=2)
    return np.ascontiguousarray(np.asarray(_upright(image).convert("RGB"))[:, :, ::-1])


def _grey(image: Any) -> Any:
    if image.mode.startswith("I;16"):
        return (np.asarray(image) >> 8).astype("uint8")
    image.draft("L", image.size)  # JPEG holds grey by itself
    is_png = image.format == "PNG"  # libpng weighs colours in its own way
    image = _upright(image)
    if image.mode in ("L", "1"):
        return np.asarray(image.convert("L"))
    rgb = np.asarray(image.convert("RGB")).astype("int32")
    if is_png:
        return (rgb @ np.array([9797, 19234, 3737], "int32") >> 15).astype("uint8")
    return (rgb @ np.array([4899, 9617, 1868], "int32") + 8192 >> 14).astype("uint8")


# ---------------------------------------------------------------- shapes


def resize_short(im: Any, size: int) -> Any:
    """The picture made larger or smaller, so that its shorter edge is `size`."""
    height, width = im.shape[:2]
    if height > width:
        return cubic(im, size * height // width, size)
    return cubic(im, size, size * width // height)


def to_chw(im: Any, order: Sequence[int] = (2, 0, 1)) -> Any:
    """The axes in another order, by default [3, height, width]."""
    if len(im.shape) != len(order):
        raise ValueError(f"to_chw: {len(order)} axes wanted, got {list(im.shape)}")
    return im.transpose(order)


def _crop(im: Any, size: int, top: int, left: int) -> Any:
    return im[top : top + size, left : left + size]


def _room(name: str, im: Any, size: int) -> tuple[int, int]:
    down, right = im.shape[0] - size, im.shape[1] - size
    if down < 0 or right < 0:
        raise ValueError(f"{name}: no {size} x {size} in a picture of {im.shape[:2]}")
    return down, right


def center_crop(im: Any, size: int, is_color: bool = True) -> Any:
    """The square in the middle. ValueError: the picture is smaller."""
    down, right = _room("center_crop", im, size)
    return _crop(im, size, down // 2, right // 2)


def random_crop(im: Any, size: int, is_color: bool = True) -> Any:
    """A square somewhere, by numpy's global generator. ValueError: as above."""
    down, right = _room("random_crop", im, size)
    top = np.random.randint(0, down + 1)
    return _crop(im, size, top, np.random.randint(0, right + 1))


def left_right_flip(im: Any, is_color: bool = True) -> Any:
    """The picture in a mirror."""
    return im[:, ::-1]


def simple_transform(
    im: Any,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Any = None,
) -> Any:
    """What a network is given: resized, cropped, float32, [3, height, width].

    is_train: cropped somewhere, and mirrored half of the time (numpy's global
    generator); else cropped in the middle. mean: taken away; a number for each colour,
    or an array like the result.
    """
    im = resize_short(im, resize_size)
    if is_train:
        im = random_crop(im, crop_size, is_color)
        if np.random.randint(2) == 0:
            im = left_right_flip(im, is_color)
    else:
        im = center_crop(im, crop_size, is_color)
    if im.ndim == 3:
        im = to_chw(im)
    im = im.astype("float32")
    if mean is not None:
        im -= _mean_like(np.array(mean, "float32"), im, is_color)
    return im


def _mean_like(mean: Any, im: Any, is_color: bool) -> Any:
    if mean.ndim == 1:
        return mean[:, None, None] if is_color else mean
    if mean.shape != im.shape:
        raise ValueError(
            f"simple_transform: mean is a number for each colour or {list(im.shape)}, "
            f"got shape {list(mean.shape)}"
        )
    return mean


def load_and_transform(
    filename: str,
    resize_size: int,
    crop_size: int,
    is_train: bool,
    is_color: bool = True,
    mean: Any = None,
) -> Any:
    """`load_image`, then `simple_transform`."""
    im = load_image(filename, is_color)
    return simple_transform(im, resize_size, crop_size, is_train, is_color, mean)


# ---------------------------------------------------------------- archives


def batch_images_from_tar(
    data_file: str,
    dataset_name: str,
    img2label: dict[str, Any],
    num_per_batch: int = 1024,
) -> str:
    """Files of a tar archive, collected in files of many: {"label": .., "data": ..}.

    img2label: which members, and their labels. The files ``batch_0``, ... are in the
    folder ``<data_file>_batch/<dataset_name>``, for `samples.load` (the reference's are
    pickles); they are made once. Returns the path of
    ``<data_file>_batch/<dataset_name>.txt``, which lists them.
    """
    folder = f"{data_file}_batch"
    batches, listing = f"{folder}/{dataset_name}", f"{folder}/{dataset_name}.txt"
    if os.path.exists(listing):
        return listing
    os.makedirs(batches, exist_ok=True)
    paths: list[str] = []
    labels: list[Any] = []
    images: list[bytes] = []

    def write() -> None:
        paths.append(f"{batches}/batch_{len(paths)}")
        with open(paths[-1], "wb") as file:
            samples.dump({"label": labels, "data": images}, file)
        labels.clear()
        images.clear()

    with tarfile.open(data_file) as archive:
        for member in archive:
            held = archive.extractfile(member) if member.name in img2label else None
            if held is None:
                continue
            images.append(held.read())
            labels.append(img2label[member.name])
            if len(images) == num_per_batch:
                write()
    if images:
        write()
    partial = f"{listing}.{os.getpid()}.part"
    with open(partial, "w") as file:
        file.writelines(f"{os.path.abspath(path)}\n" for path in paths)
    os.replace(partial, listing)
    return listing
