"""Decode and decompress text files piece by piece. Bytes outside of the encoding are refused with their offset."""

import bz2
import codecs
import zlib
from collections.abc import Iterator, Mapping

from sluice.errors import InvalidInput
from sluice.pipeline.encodings import UTF_8, encoding_problem

UNICODE = "utf-8"
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_COMPRESSED = (".gz", ".bz2")
"""Suffixes of compressions that are read."""
_COMPRESSED_OTHERWISE = (".lz4", ".snappy", ".deflate", ".zst", ".zstd", ".xz", ".zip", ".z")
"""Suffixes of other compressions. Spark reads some of them, but none is checked here."""
_MAX_PIECE = 4 * 1024 * 1024
"""Maximum number of bytes decompressed at once."""


def stated_encoding(options: Mapping[str, str]) -> str:
    """Return the encoding stated by options of Spark's reader, whose names are in small letters."""
    return options.get("encoding", options.get("charset", UTF_8))


class _WrongEncodingError(Exception):
    """A file is not text in the stated encoding."""

    def __init__(self, problem: str, *likely: str) -> None:
        super().__init__(problem)
        self.likely = likely


def decoded(path: str, pieces: Iterator[bytes], encoding: str, *, is_json: bool = False) -> Iterator[str]:
    """Decode the content of a file, decompressed if its name states a compression.

    Args:
        is_json: True if the message must advise to convert the file, since Spark reads lines of JSON best as UTF-8.

    Raises:
        InvalidInput: it is not text in that encoding, or is incomplete.
    """
    if problem := encoding_problem(encoding):
        raise InvalidInput(f"source.options.encoding: {encoding!r} cannot be set: {problem}")
    try:
        yield from _decoded(decompressed(path, pieces), encoding)
    except _WrongEncodingError as error:
        likely = error.likely
        advice = f"set source.options.encoding to {' or '.join(likely)}"
        if is_json:
            advice = f"convert it, for example by `iconv -f {likely[0]} -t {UTF_8}`"
        raise InvalidInput(f"{path} {error}: {advice}") from None


def _decoded(pieces: Iterator[bytes], encoding: str) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    is_unicode = codecs.lookup(encoding).name == UNICODE
    offset, line = 0, 1
    for piece in pieces:
        if offset == 0 and is_unicode:
            _check_byte_order_mark(piece)
        text = _decode(decoder, piece, offset, line, encoding)
        if "\0" in text:
            where = offset + piece.find(b"\0") if is_unicode else offset
            line += text.count("\n", 0, text.find("\0"))
            raise _WrongEncodingError(
                f"contains a zero byte (from byte {where:,}, line {line:,}), so it is not text in {encoding}: if it is "
                "UTF-16",
                "UTF-16LE",
                "UTF-16BE",
            )
        offset += len(piece)
        line += text.count("\n")
        yield text
    yield _decode(decoder, b"", offset, line, encoding, final=True)


def is_compressed(path: str) -> bool:
    """Return True if the name of a file states a compression that Sluice reads."""
    return path.lower().endswith(_COMPRESSED)


def decompressed(path: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Decompress a file if its name states a compression.

    Raises:
        InvalidInput: it is truncated, followed by something else, or in an unsupported compression.
    """
    name = path.lower()
    if is_compressed(path):
        return _members(path, pieces, _Gzip if name.endswith(".gz") else _Bzip2)
    if name.endswith(_COMPRESSED_OTHERWISE):
        raise InvalidInput(
            f"{path}: Sluice cannot check text in this compression: use gzip or bzip2, or do not compress it"
        )
    return pieces


class _Gzip:
    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=31)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed data in pieces of a limited size."""
        piece = b""
        while not self._stream.eof and (data or len(piece) == _MAX_PIECE):
            piece = self._stream.decompress(data, _MAX_PIECE)
            data = self._stream.unconsumed_tail
            yield piece

    @property
    def rest(self) -> bytes | None:
        """Data after the end of the member; None before the end."""
        return self._stream.unused_data if self._stream.eof else None


class _Bzip2:
    def __init__(self) -> None:
        self._stream = bz2.BZ2Decompressor()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed data in pieces of a limited size."""
        yield self._stream.decompress(data, _MAX_PIECE)
        while not self._stream.eof and not self._stream.needs_input:
            yield self._stream.decompress(b"", _MAX_PIECE)

    @property
    def rest(self) -> bytes | None:
        """Data after the end of the member; None before the end."""
        return self._stream.unused_data if self._stream.eof else None


def _members(path: str, pieces: Iterator[bytes], new: type[_Gzip] | type[_Bzip2]) -> Iterator[bytes]:
    """Decompress consecutive members, as `cat a.gz b.gz` creates them."""
    member: _Gzip | _Bzip2 | None = None
    try:
        for piece in pieces:
            rest = piece
            while rest:
                member = member or new()
                yield from member.feed(rest)
                ended = member.rest
                rest, member = (b"", member) if ended is None else (ended, None)
    except (zlib.error, OSError, EOFError) as error:
        raise InvalidInput(
            f"{path} is not compressed completely, although its name says so. Compress it again"
        ) from error
    if member is not None:
        raise InvalidInput(f"{path} is truncated: its compressed content has no end")


def _decode(
    decoder: codecs.IncrementalDecoder, piece: bytes, offset: int, line: int, encoding: str, *, final: bool = False
) -> str:
    """Return the text of a piece that begins at an offset, on a line."""
    waiting = len(decoder.getstate()[0])
    try:
        return decoder.decode(piece, final)
    except UnicodeDecodeError as error:
        where = offset - waiting + error.start
        bytes_there = error.object[error.start : error.start + 1]  # only one byte: a reason quotes no values
        line += codecs.decode(error.object[: error.start], encoding, "ignore").count("\n")
        position = f"byte {where:,}, line {line:,} ({bytes_there!r})"
        problem = f"is not {encoding}: {error.reason} at {position}; if it is ISO-8859-1"
        raise _WrongEncodingError(problem, "ISO-8859-1") from None
    except UnicodeError as error:  # for example UTF-16 without a byte order mark
        raise _WrongEncodingError(f"is not {encoding}: {error}; if it is UTF-8", UTF_8) from None


def _check_byte_order_mark(piece: bytes) -> None:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if piece.startswith(mark):
            raise _WrongEncodingError(f"is not UTF-8: it begins with the byte order mark of {encoding}", encoding)
