"""Hashes: digests over distinct values, Spark's Murmur3 (`hash`) and xxHash64 over columns, left to right."""

from __future__ import annotations

import hashlib
import zlib
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.engine.base import UdfSpec
from gateway.engine.functions import Kernel, RowError, implementation
from gateway.engine.functions.distinct import scalar

Words = np.ndarray[Any, np.dtype[Any]]


@scalar("md5")
def md5(value: bytes) -> str:
    """MD5 in hex."""
    return hashlib.md5(value, usedforsecurity=False).hexdigest()


@scalar("sha1")
def sha1(value: bytes) -> str:
    """SHA-1 in hex."""
    return hashlib.sha1(value, usedforsecurity=False).hexdigest()


_SHA2 = {0: hashlib.sha256, 224: hashlib.sha224, 256: hashlib.sha256, 384: hashlib.sha384, 512: hashlib.sha512}


@scalar("sha2")
def sha2(value: bytes, bits: int) -> str | None:
    """SHA-224 … 512 in hex; 0 means 256, other sizes NULL."""
    made = _SHA2.get(bits)
    return None if made is None else made(value).hexdigest()


@scalar("crc32")
def crc32(value: bytes) -> int:
    """CRC-32."""
    return zlib.crc32(value)


_SEED = 42
_U32, _U64 = np.uint32, np.uint64


def _rotl32(x: Words, by: int) -> Words:
    return (x << _U32(by)) | (x >> _U32(32 - by))


def _mix_k1(k1: Words) -> Words:
    return _rotl32(k1 * _U32(0xCC9E2D51), 15) * _U32(0x1B873593)


def _mix_h1(h1: Words, k1: Words) -> Words:
    return _rotl32(h1 ^ k1, 13) * _U32(5) + _U32(0xE6546B64)


def _fmix(h1: Words, length: Words | int) -> Words:
    h1 = h1 ^ np.asarray(length).astype(_U32)
    h1 = (h1 ^ (h1 >> _U32(16))) * _U32(0x85EBCA6B)
    h1 = (h1 ^ (h1 >> _U32(13))) * _U32(0xC2B2AE35)
    return np.asarray(h1 ^ (h1 >> _U32(16)))


def _murmur_int(values: Words, seed: Words) -> Words:
    return _fmix(_mix_h1(seed, _mix_k1(values.astype(np.int32).view(_U32))), 4)


def _murmur_long(values: Words, seed: Words) -> Words:
    bits = values.astype(np.int64).view(_U64)
    low, high = bits.astype(_U32), (bits >> _U64(32)).astype(_U32)
    return _fmix(_mix_h1(_mix_h1(seed, _mix_k1(low)), _mix_k1(high)), 8)


def _murmur_bytes(value: bytes, seed: int) -> int:
    mask = 0xFFFFFFFF

    def mix(h: int, k: int) -> int:
        k = (k * 0xCC9E2D51) & mask
        k = ((k << 15) | (k >> 17)) & mask
        h ^= (k * 0x1B873593) & mask
        h = ((h << 13) | (h >> 19)) & mask
        return (h * 5 + 0xE6546B64) & mask

    h, aligned = seed, len(value) // 4 * 4
    for at in range(0, aligned, 4):
        h = mix(h, int.from_bytes(value[at : at + 4], "little"))
    for byte in value[aligned:]:
        h = mix(h, byte if byte < 128 else byte | 0xFFFFFF00)
    h ^= len(value)
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & mask
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & mask
    return h ^ (h >> 16)


_P1, _P2, _P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_P4, _P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_M64 = 0xFFFFFFFFFFFFFFFF


def _rotl64(x: Words, by: int) -> Words:
    return (x << _U64(by)) | (x >> _U64(64 - by))


def _avalanche(h: Words) -> Words:
    h = (h ^ (h >> _U64(33))) * _U64(_P2)
    h = (h ^ (h >> _U64(29))) * _U64(_P3)
    return np.asarray(h ^ (h >> _U64(32)))


def _xx_int(values: Words, seed: Words) -> Words:
    h = seed + _U64(_P5) + _U64(4)
    h = h ^ (values.astype(np.int32).view(_U32).astype(_U64) * _U64(_P1))
    return _avalanche(_rotl64(h, 23) * _U64(_P2) + _U64(_P3))


def _xx_long(values: Words, seed: Words) -> Words:
    h = seed + _U64(_P5) + _U64(8)
    h = h ^ (_rotl64(values.astype(np.int64).view(_U64) * _U64(_P2), 31) * _U64(_P1))
    return _avalanche(_rotl64(h, 27) * _U64(_P1) + _U64(_P4))


def _xx_bytes(value: bytes, seed: int) -> int:
    def rotl(x: int, by: int) -> int:
        return ((x << by) | (x >> (64 - by))) & _M64

    def lane(acc: int, at: int) -> int:
        word = int.from_bytes(value[at : at + 8], "little")
        return (rotl((acc + word * _P2) & _M64, 31) * _P1) & _M64

    at, size = 0, len(value)
    if size >= 32:
        v = [(seed + _P1 + _P2) & _M64, (seed + _P2) & _M64, seed, (seed - _P1) & _M64]
        while at <= size - 32:
            v = [lane(acc, at + 8 * i) for i, acc in enumerate(v)]
            at += 32
        h = (rotl(v[0], 1) + rotl(v[1], 7) + rotl(v[2], 12) + rotl(v[3], 18)) & _M64
        for acc in v:
            h = ((h ^ ((rotl((acc * _P2) & _M64, 31) * _P1) & _M64)) * _P1 + _P4) & _M64
    else:
        h = (seed + _P5) & _M64
    h = (h + size) & _M64
    while at <= size - 8:
        h ^= lane(0, at)
        h = (rotl(h, 27) * _P1 + _P4) & _M64
        at += 8
    if at <= size - 4:
        h ^= (int.from_bytes(value[at : at + 4], "little") * _P1) & _M64
        h = (rotl(h, 23) * _P2 + _P3) & _M64
        at += 4
    for byte in value[at:]:
        h ^= (byte * _P5) & _M64
        h = (rotl(h, 11) * _P1) & _M64
    h = ((h ^ (h >> 33)) * _P2) & _M64
    h = ((h ^ (h >> 29)) * _P3) & _M64
    return h ^ (h >> 32)


class _Texts:
    """Bytes of many values in one buffer, the longest first."""

    def __init__(self, data: pa.Buffer | None, starts: Words, lengths: Words) -> None:
        self._data = np.frombuffer(data or b"", np.uint8)
        self._starts, self.lengths = starts, lengths

    def longer(self, size: int) -> int:
        """How many have at least `size` bytes."""
        return int(np.searchsorted(-self.lengths, -size, side="right"))

    def words(self, rows: Words | slice, at: Words | int, kind: Any) -> Words:
        """Little-endian numbers at a byte of each of some values."""
        width = np.dtype(kind).itemsize
        count = max(len(self._data) - width + 1, 0)
        every = np.ndarray((count,), np.dtype(kind).newbyteorder("<"), self._data, strides=(1,))
        found: Words = every[self._starts[rows] + at].astype(kind)
        return found


def _murmur_texts(texts: _Texts, seed: Words) -> Words:
    h, at = seed.copy(), 0
    while count := texts.longer(at + 4):
        h[:count] = _mix_h1(h[:count], _mix_k1(texts.words(slice(count), at, _U32)))
        at += 4
    ends = texts.lengths // 4 * 4
    while len(rows := np.flatnonzero(ends < texts.lengths)):
        byte = texts.words(rows, ends[rows], np.int8).astype(np.int32).view(_U32)
        h[rows] = _mix_h1(h[rows], _mix_k1(byte))
        ends[rows] += 1
    return _fmix(h, texts.lengths)


def _xx_lane(h: Words, words: Words) -> Words:
    return _rotl64(h + words * _U64(_P2), 31) * _U64(_P1)


def _xx_texts(texts: _Texts, seed: Words) -> Words:
    h, zero = seed + _U64(_P5), np.zeros(1, _U64)
    large, at = texts.longer(32), 0
    if large:
        first = seed[:large]
        lanes = [first + _U64(_P1) + _U64(_P2), first + _U64(_P2), first.copy(), first - _U64(_P1)]
        while count := texts.longer(at + 32):
            for i, lane in enumerate(lanes):
                lane[:count] = _xx_lane(lane[:count], texts.words(slice(count), at + 8 * i, _U64))
            at += 32
        mixed = sum(_rotl64(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            mixed = (mixed ^ _xx_lane(zero, lane)) * _U64(_P1) + _U64(_P4)
        h[:large] = mixed
    h += texts.lengths.astype(_U64)
    ends = texts.lengths // 32 * 32
    for kind, by, times, plus in ((_U64, 27, _P1, _P4), (_U32, 23, _P2, _P3), (np.uint8, 11, _P1, 0)):
        width = np.dtype(kind).itemsize
        while len(rows := np.flatnonzero(ends + width <= texts.lengths)):
            words = texts.words(rows, ends[rows], kind).astype(_U64)
            words = _xx_lane(zero, words) if width == 8 else words * _U64(_P1 if width == 4 else _P5)
            h[rows] = _rotl64(h[rows] ^ words, by) * _U64(times) + _U64(plus)
            ends[rows] += width
    return _avalanche(h)


_BYTES = {"hash": (_murmur_texts, _murmur_bytes), "xxhash64": (_xx_texts, _xx_bytes)}
_FAMILIES = {
    "hash": (_U32, np.int32, _murmur_int, _murmur_long),
    "xxhash64": (_U64, np.int64, _xx_int, _xx_long),
}


def _hashed(array: pa.Array, seed: Words, family: str) -> Words:
    """Hashes of one column with `seed` per row; NULL leaves the seed."""
    _, _, of_int, of_long = _FAMILIES[family]
    t = array.type
    if pa.types.is_null(t):
        return seed
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    if pa.types.is_struct(t):
        out = seed
        for child in array.flatten():
            out = _hashed(child, out, family)
        return np.where(valid, out, seed)
    if pa.types.is_list(t):
        return _hashed_lists(array, valid, seed, family)
    if pa.types.is_floating(t):
        word = np.int32 if t == pa.float32() else np.int64
        values = pc.fill_null(array, 0.0).to_numpy(zero_copy_only=False) + 0.0  # -0.0 hashes like 0.0
        values = np.where(np.isnan(values), np.nan, values).astype(values.dtype)
        bits = np.ascontiguousarray(values).view(word)
        return np.where(valid, (of_int if word is np.int32 else of_long)(bits, seed), seed)
    if pa.types.is_boolean(t) or pa.types.is_date32(t) or (pa.types.is_integer(t) and t.bit_width <= 32):
        numbers = array.cast(pa.int32())
        return np.where(valid, of_int(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), seed), seed)
    if pa.types.is_integer(t) or pa.types.is_timestamp(t):
        numbers = array.cast(pa.int64())
        return np.where(valid, of_long(pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False), seed), seed)
    if pa.types.is_decimal(t):
        if t.precision <= 18:
            longs = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset :][: 2 * len(array) : 2]
            return np.where(valid, of_long(np.where(valid, longs, 0), seed), seed)
        texts = pa.array(
            [None if d is None else _big_integer(int(d.scaleb(t.scale))) for d in array.to_pylist()], pa.binary()
        )
    elif pa.types.is_string(t) or pa.types.is_binary(t):
        texts = array.cast(pa.binary())
    else:
        raise RowError("UNSUPPORTED_FEATURE", f"{family} of {t} is not supported.")
    return _hashed_bytes(texts, valid, seed, family)


def _big_integer(value: int) -> bytes:
    """java.math.BigInteger.toByteArray."""
    return value.to_bytes(((value if value >= 0 else ~value).bit_length() // 8) + 1, "big", signed=True)


def _hashed_lists(array: pa.Array, valid: Words, seed: Words, family: str) -> Words:
    """The elements of each list, one after another: the first ones of all lists, then the second ones, and so on."""
    out, left = seed.copy(), np.flatnonzero(valid)
    starts = array.offsets.to_numpy(zero_copy_only=False)[:-1]
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    at = 0
    while len(left := left[lengths[left] > at]):
        out[left] = _hashed(array.values.take(pa.array(starts[left] + at)), out[left], family)
        at += 1
    return out


# Longer ones are hashed one by one, and all where they are so few that arrays would cost more.
_MOST_BYTES, _FEWEST = 256, 32


def _hashed_bytes(texts: pa.Array, valid: Words, seed: Words, family: str) -> Words:
    many, one = _BYTES[family]
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    lengths = np.diff(offsets)
    together = np.flatnonzero(valid & (lengths <= _MOST_BYTES))
    out = seed.copy()
    if len(together) < _FEWEST:
        together = together[:0]
    else:
        # the longest first, so that those that have another word are always the first ones
        together = together[np.argsort(-lengths[together], kind="stable")]
        out[together] = many(_Texts(texts.buffers()[2], offsets[together], lengths[together]), seed[together])
    alone = valid.copy()
    alone[together] = False
    for row in np.flatnonzero(alone).tolist():
        out[row] = one(texts[row].as_py(), int(seed[row]))
    return out


def _register(name: str) -> None:
    unsigned, signed = _FAMILIES[name][:2]

    def factory(spec: UdfSpec) -> Kernel:
        returns = spec.returns.arrow()

        def kernel(*arrays: pa.Array) -> pa.Array:
            out: Words = np.full(len(arrays[0]), _SEED, dtype=unsigned)
            with np.errstate(over="ignore"):
                for array in arrays:
                    out = _hashed(array, out, name)
            return pa.array(out.view(signed), returns)

        return kernel

    implementation(name)(factory)


for _name in _FAMILIES:
    _register(_name)


def bucket_hashes(values: pa.Array) -> Words | None:
    """The hash by which Spark's OpenHashSet places a value: Murmur3 of its Java hashCode.

    Where a function takes "any" of several values (mode), Spark takes the first in the order of these buckets. None for
    decimals that are neither whole 64-bit numbers nor what a double prints.
    """
    t = values.type
    if pa.types.is_decimal(t):
        found = [_scala_hash(v) for v in values.to_pylist()]
        if None in found:
            return None
        codes = np.array(found, dtype=_U32)
    elif pa.types.is_string(t) or pa.types.is_binary(t):
        seeds = np.full(len(values), _SEED, dtype=_U32)
        with np.errstate(over="ignore"):
            codes = _hashed_bytes(values.cast(pa.binary()), np.ones(len(values), dtype=np.bool_), seeds, "hash")
    elif pa.types.is_boolean(t):
        codes = np.where(values.to_numpy(zero_copy_only=False), 1231, 1237).astype(_U32)
    elif t.bit_width == 64:
        bits = values.to_numpy(zero_copy_only=False).view(_U64)
        codes = (bits ^ (bits >> _U64(32))).astype(_U32)
    elif pa.types.is_float32(t):
        codes = values.to_numpy(zero_copy_only=False).view(_U32)
    else:
        codes = values.cast(pa.int32()).to_numpy(zero_copy_only=False).view(_U32)
    with np.errstate(over="ignore"):
        return _murmur_int(codes.view(np.int32), np.zeros(len(codes), dtype=_U32))


def _scala_hash(value: Decimal) -> int | None:
    """hashCode of scala.math.BigDecimal as 32 unsigned bits: equal numbers of all types have equal hashes."""
    number = float(value)
    if value == int(value):
        whole = int(value)
        if not -(1 << 63) <= whole < 1 << 63:
            return None
        bits = whole & _M64
        return bits & 0xFFFFFFFF if -(1 << 31) <= whole < 1 << 31 else (bits ^ bits >> 32) & 0xFFFFFFFF
    if Decimal(repr(number)) != value:
        return None
    if float(np.float32(number)) == number:
        return int(np.float32(number).view(_U32))
    bits = int(np.float64(number).view(_U64))
    return (bits ^ bits >> 32) & 0xFFFFFFFF
