"""Ops on sequences of ids: `sequence_enumerate`, `sequence_erase`, `hash`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .infer import InferContext, same_as
from .lod import host, innermost, joined, lengths_of, sole_level
from .registry import op
from .schema import Attr, AttrType, In, Out

__all__: list[str] = []

_AT_RUN_TIME = Attr("@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@", bool, True)


def _infer_enumerate(op: InferContext) -> None:
    x, width = op.input("X"), op.attr("win_size")
    op.check(
        len(x.shape) == 2 and x.shape[1] in (1, -1),
        f"X has shape {x.shape}, not (ids, 1)",
    )
    op.check(width >= 2, f"win_size must be 2 at least, got {width}")
    op.set("Out", (x.shape[0], width), x.dtype, x.lod_level)


sequence_enumerate = op(
    "sequence_enumerate",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("win_size", int), Attr("pad_value", int, 0), _AT_RUN_TIME],
    infer=_infer_enumerate,
    grad=None,
)


@sequence_enumerate.kernel
def _(xp: Any, x: Any, *, win_size: int, pad_value: int, lod: Any) -> Any:
    """Each id with those that follow it in its sequence, `win_size` in all."""
    offsets = sole_level("sequence_enumerate", "X", lod.get("X"), len(x))
    ends = np.repeat(offsets[1:], lengths_of(offsets)).reshape(-1, 1)
    places = np.arange(len(x)).reshape(-1, 1) + np.arange(win_size)
    places[places >= ends] = len(x)
    padded = xp.append(x.reshape(-1), xp.full(1, pad_value, x.dtype))
    return padded.take(xp.asarray(places))


sequence_erase = op(
    "sequence_erase",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[Attr("tokens", AttrType.INTS)],
    infer=same_as("X"),
    grad=None,
)


def _kept(xp: Any, x: Any, tokens: Any) -> Any:
    """For each id, whether it is none of the tokens."""
    unwanted = xp.asarray(tokens, x.dtype)
    return (x.reshape(-1, 1) != unwanted.reshape(1, -1)).all(axis=1)


@sequence_erase.lod_kernel
def _(lod: dict[str, Any], values: dict[str, Any], attrs: dict[str, Any]) -> Any:
    levels = lod["X"]
    before = np.array(joined(_kept(np, host(values["X"]), attrs["tokens"])))
    return {"Out": [*levels[:-1], before[np.asarray(levels[-1])].tolist()]}


@sequence_erase.kernel
def _(xp: Any, x: Any, *, tokens: Any, lod: Any) -> Any:
    """The ids that are none of the tokens."""
    innermost("sequence_erase", "X", lod.get("X"), len(x))
    return x[_kept(xp, x, tokens)]


def _infer_hash(op: InferContext) -> None:
    x, count = op.input("X"), op.attr("num_hash")
    op.check(len(x.shape) == 2, f"X has shape {x.shape}, not (rows, ids)")
    op.set("Out", (x.shape[0], count, 1), x.dtype, x.lod_level)


hash_ = op(
    "hash",
    ins=[In("X")],
    outs=[Out("Out")],
    attrs=[
        Attr("num_hash", int, 1),
        Attr("mod_by", AttrType.LONG, 100000),
        _AT_RUN_TIME,
    ],
    infer=_infer_hash,
    grad=None,
)

# xxHash, 64 bits (Collet, https://xxhash.com): its five primes
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_MASK = (1 << 64) - 1


def _number(xp: Any, value: int) -> Any:
    return xp.asarray(np.array([value & _MASK], "u8"))


def _rotate(xp: Any, x: Any, bits: int) -> Any:
    return (x << _number(xp, bits)) | (x >> _number(xp, 64 - bits))


def _round(xp: Any, state: Any, lane: Any) -> Any:
    mixed = _rotate(xp, state + lane * _number(xp, _P2), 31)
    return mixed * _number(xp, _P1)


def _stripes(xp: Any, lanes: Any, count: int, seed: int) -> Any:
    """The state after all whole stripes of four lanes."""
    states = [
        xp.zeros(len(lanes), "u8") + _number(xp, start)
        for start in (seed + _P1 + _P2, seed + _P2, seed, seed - _P1)
    ]
    for i in range(count):
        states = [_round(xp, s, lanes[:, 4 * i + j]) for j, s in enumerate(states)]
    whole = _rotate(xp, states[0], 1)
    for state, bits in zip(states[1:], (7, 12, 18)):
        whole = whole + _rotate(xp, state, bits)
    for state in states:
        mixed = _round(xp, xp.zeros_like(state), state)
        whole = (whole ^ mixed) * _number(xp, _P1) + _number(xp, _P4)
    return whole


def _xxh64(xp: Any, words: Any, seed: int) -> Any:
    """The hash of each row of 32-bit words (rows, n)."""
    rows, n = words.shape
    pairs = words[:, : n // 2 * 2].astype("u8")
    lanes = pairs[:, ::2] | (pairs[:, 1::2] << _number(xp, 32))
    count = n // 8
    if count:
        state = _stripes(xp, lanes, count, seed)
    else:
        state = xp.zeros(rows, "u8") + _number(xp, seed + _P5)
    state = state + _number(xp, 4 * n)
    for i in range(4 * count, lanes.shape[1]):
        mixed = _round(xp, xp.zeros_like(state), lanes[:, i])
        state = _rotate(xp, state ^ mixed, 27) * _number(xp, _P1) + _number(xp, _P4)
    if n % 2:
        last = words[:, -1].astype("u8") * _number(xp, _P1)
        state = _rotate(xp, state ^ last, 23) * _number(xp, _P2) + _number(xp, _P3)
    for bits, prime in ((33, _P2), (29, _P3)):
        state = (state ^ (state >> _number(xp, bits))) * _number(xp, prime)
    return state ^ (state >> _number(xp, 32))


@hash_.kernel
def _(xp: Any, x: Any, *, num_hash: int, mod_by: int) -> Any:
    """Out (rows, num_hash, 1): hashes below `mod_by` of each row's bytes.

    The seeds are 0, 1, ...; the hash is xxHash's of 64 bits.
    """
    words = xp.ascontiguousarray(x).view("u4")
    words = words.reshape(len(x), math.prod(words.shape[1:]))
    found = [_xxh64(xp, words, seed) for seed in range(num_hash)]
    all_of = xp.stack(found, 1) % _number(xp, mod_by)
    return all_of.astype(x.dtype).reshape(len(x), num_hash, 1)
