"""Edge tables: every way of writing text that somebody's export, editor or malice has."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from hostile.case import Case, fit

ROWS = "a,b\nb,c\nc,d\nd,e\ne,f\nf,a\n"
TABLE = "source,target\n" + ROWS
RING = (6, 12)
WEIGHTED = "source,target,weight\na,b,1\nb,c,2\nc,a,3\n"
LONG = "x" * 200_000


def with_weight(weight: str) -> str:
    return WEIGHTED + f"c,d,{weight}\n"


def wide(names: str, count: int) -> str:
    """Return a table with so many columns beside the ends."""
    return f"source,target,{names}\na,b{',1' * count}\nb,c{',1' * count}\n"


def bomb(path: Path, part: bytes) -> None:
    """Write a gzip that unpacks to sixteen times a part, quickly."""
    packed = gzip.compress(part, 1, mtime=0)
    path.write_bytes(packed * 16)


def pack(content: bytes, how: str) -> bytes:
    if how == "gz":
        return gzip.compress(content, 1, mtime=0)
    return bytes(pa.Codec("zstd").compress(content, asbytes=True))


SMALL: dict[str, tuple[str | bytes, str | int | tuple[int, int]]] = {
    # what can be read
    "plain": (TABLE, RING),
    "no header": (ROWS, RING),
    "mark": (b"\xef\xbb\xbf" + TABLE.encode(), RING),
    "mark after comments": (b"# c\n\xef\xbb\xbf" + ROWS.encode(), RING),
    "carriage returns": (TABLE.replace("\n", "\r"), RING),
    "both line ends": (TABLE.replace("\n", "\r\n"), RING),
    "mixed line ends": ("source,target\r\na,b\nb,c\r\nc,a\n", (3, 6)),
    "no last line end": (TABLE.rstrip(), RING),
    "blank lines": (TABLE.replace("\n", "\n\n"), RING),
    "blanks around": ("source , target\n a , b \n b, c\nc ,a\n", (3, 6)),
    "tabs": (TABLE.replace(",", "\t"), RING),
    "semicolons": (TABLE.replace(",", ";"), RING),
    "pipes": (TABLE.replace(",", "|"), RING),
    "blanks": (TABLE.replace(",", "   "), RING),
    "quoted": ('source,target\n"a","b"\n"b","c"\n"c","a"\n', (3, 6)),
    "quotes in an id": ('source,target\n"a ""x""",b\nb,c\nc,"a ""x"""\n', (3, 6)),
    "delimiter in an id": ('source,target\n"a,x",b\nb,c\nc,"a,x"\n', (3, 6)),
    "line end in an id": ('source,target\n"a\nx",b\nb,c\nc,"a\nx"\n', (3, 6)),
    "comments": ("# made by hand\n% or not\n" + TABLE, RING),
    "duplicate edges": (TABLE + ROWS * 3, RING),
    "self-loops": (TABLE + "a,a\nb,b\n", RING),
    "escapes in ids": ("source,target\n\x1b[31ma,b\nb,c\nc,\x1b[31ma\n", (3, 6)),
    "formulas as ids": ("source,target\n=cmd|' /C calc'!A0,b\nb,@SUM(1)\n@SUM(1),-1+1\n", (4, 6)),
    "no-break space": ("source,target\na\u00a0,b\nb,a\na,a\u00a0\n", (3, 6)),
    "zero width": ("source,target\na\u200b,b\nb,a\na,a\u200b\n", (3, 6)),
    "right to left": ("source,target\n\u202eabc,b\nb,c\nc,\u202eabc\n", (3, 6)),
    "emoji": ("source,target\n👩‍💻,b\nb,c\nc,👩‍💻\n", (3, 6)),
    "composed and not": ("source,target\n\u00e9,b\nb,e\u0301\ne\u0301,\u00e9\n", (3, 6)),
    "integers": ("1,2\n2,3\n3,1\n", (3, 6)),
    "negative integers": ("-1,2\n2,3\n3,-1\n", (3, 6)),
    "zeros before": ("007,2\n2,3\n3,007\n", (3, 6)),
    "beyond 64 bits": (f"{2**64},2\n2,3\n3,{2**64}\n", (3, 6)),
    "5,000 digits": (f"{'9' * 5000},2\n2,3\n3,{'9' * 5000}\n", (3, 6)),
    "NA is an id": ("source,target\nNA,b\nb,nan\nnan,NA\n", (3, 6)),
    "true is an id": ("source,target\ntrue,false\nfalse,maybe\nmaybe,true\n", (3, 6)),
    "dates are ids": ("source,target\n2020-01-01,b\nb,c\nc,2020-01-01\n", (3, 6)),
    "field of 200 kB": (f"source,target\n{LONG},b\nb,c\nc,{LONG}\n", (3, 6)),
    "header and row of 300 kB": (f"source,target,note\na,b,{LONG}{LONG[:100_000]}\nb,c,x\nc,a,y\n", (3, 6)),
    "300 columns": (f"source,target,{','.join(f'k{i}' for i in range(300))}\n" + "a,b" + ",1" * 300 + "\nb,c" + ",2" * 300 + "\n", (3, 4)),
    "weights": (WEIGHTED, (3, 6)),
    "weight 0": (with_weight("0"), (4, 6)),
    "weight 1e-30": (with_weight("1e-30"), (4, 8)),
    "weights in hexadecimal": (with_weight("0x10"), (4, 8)),
    "header in capitals": ("SOURCE,TARGET\na,b\nb,c\nc,a\n", (3, 6)),
    "from, to": ("From,To\na,b\nb,c\nc,a\n", (3, 6)),
    # what cannot
    "one node": ("source,target\na,a\n", "must have at least 2 nodes"),
    "nothing": ("", "is empty"),
    "blank": ("\n\n  \n", "is empty"),
    "only comments": ("# a\n# b\n", "is empty but for comments"),
    "only a header": ("source,target\n", "has a header and no rows"),
    "one column": ("source\na\nb\n", "has one column only"),
    "too few fields": (TABLE + "a\n", "line 8: 2 fields as in the first row expected, 1 found"),
    "too many fields": (TABLE + "a,b,c\n", "line 8: 2 fields as in the first row expected, 3 found"),
    "missing id": (TABLE + ",b\n", "line 8, column 'source': the id is missing"),
    "blank id": (TABLE + 'a," "\n', "line 8, column 'target': the id is missing"),
    "open quote": ('source,target\n"a,b\nb,c\n', r"e\.csv"),
    "Latin-1": (b"source,target\na,b\ncaf\xe9,a\n", r"line 3: not UTF-8 text \(byte 0xe9\)"),
    "cut inside a character": (TABLE.encode() + b"a,\xc3", "line 8: not UTF-8 text"),
    "surrogates": (TABLE.encode() + b"a,\xed\xa0\x80\n", "line 8: not UTF-8 text"),
    "overlong": (TABLE.encode() + b"a,\xc0\xaf\n", "line 8: not UTF-8 text"),
    "UTF-16": (TABLE.encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
    "UTF-16 BE": (b"\xfe\xff" + TABLE.encode("utf-16-be"), "is UTF-16 text; save it as UTF-8"),
    "UTF-16 without a mark": (TABLE.encode("utf-16-le"), "is UTF-16 text without a mark"),
    "UTF-32": (TABLE.encode("utf-32-le"), "UTF-16 text without a mark|bytes of no format"),
    "zeros": (b"\0" * 500, "UTF-16|no format"),
    "noise": (bytes(range(1, 256)) * 9, r"e\.csv"),
    "weight is a word": (with_weight("heavy"), "line 5, column 'weight': a number expected, 'heavy' found"),
    "weight with a comma": (with_weight('"0,5"'), "line 5, column 'weight': a number expected, '0,5'"),
    "no weight": (with_weight(""), "line 5, column 'weight': a weight must be finite.*found none"),
    "weight nan": (with_weight("nan"), "line 5, column 'weight': a weight must be finite"),
    "weight inf": (with_weight("inf"), "line 5, column 'weight': a weight must be finite.*found inf"),
    "negative weight": (with_weight("-1"), "line 5, column 'weight': a weight must be.*found -1"),
    "weight 1e400": (with_weight("1e400"), "line 5, column 'weight': .*finite"),
    "weight 1e300": (with_weight("1e300"), "line 5, column 'weight': .*found 1e"),
    "weight 1e-300": (with_weight("1e-300"), "line 5, column 'weight': .*1e-300"),
    "weight of 5,000 digits": (with_weight("9" * 5000), "line 5, column 'weight'"),
    "all weights zero": ("source,target,weight\na,b,0\nb,c,0\n", "zero everywhere"),
    "HTML": ("<html><body><p>404</p></body></html>", r"e\.csv"),
    "JSON": ('[{"source": 1, "target": 2}]', r"e\.csv"),
}  # fmt: skip
"""Contents of e.csv, and the pattern or the nodes and edges that come of each; some are read from gzip too, some from zstd."""

LARGE: dict[str, tuple[Callable[[], str], str | int | tuple[int, int]]] = {
    "weights of 3e38": (lambda: "source,target,weight\n" + "a,b,3e38\nb,c,3e38\nc,a,3e38\n" * 40, "the sum of all weights must be below"),
    "300,000 comments": (lambda: "# c\n" * 300_000 + TABLE, RING),
    "100,000 columns": (lambda: wide(",".join(f"c{i}" for i in range(100_000)), 100_000), 3),
    "100,000 columns of one name": (lambda: wide(",".join(["k"] * 100_000), 100_000), 3),
    "1,000,001 columns": (lambda: ",".join(["a"] * 1_000_002) + "\n", "more than 1,000,000 columns"),
    "one line of 40 MB": (lambda: "a" * 40_000_000, "line 1 has more than"),
    "one comment of 40 MB": (lambda: "#" + "a" * 40_000_000, "line 1 has more than"),
    "row of 9 MB": (lambda: f"source,target,note\na,b,{'x' * 9_000_000}\nb,c,y\nc,a,z\n", 3),
    "40 MB of quotes": (lambda: '"' * 40_000_000, "more than"),
    "a million quotes": (lambda: "source,target\n" + '"' * 1_000_001 + "\n", r"e\.csv"),
    "three million blanks": (lambda: "source target\na b\nb" + " " * 3_000_000 + "c\nc a\n", 3),
    "one hub": (lambda: "source,target\n" + "".join(f"0,{i}\n" for i in range(1, 5_000)), (5_000, 2 * 4_999)),
    "only self-loops": (lambda: "source,target\n" + "".join(f"{i},{i}\n" for i in range(100)), "zero everywhere"),
    "fault in the last of 300,000 rows": (lambda: "source,target\n" + "a,b\n" * 300_000 + "c\n", "line 300002: 2 fields"),
}  # fmt: skip


def cases() -> Iterator[Case]:
    for index, (name, (content, expected)) in enumerate(SMALL.items()):
        data = content.encode() if isinstance(content, str) else content
        yield fit(f"edges, {name}", "e.csv", data, expected)
        if data and index % 4 == 1:  # what is unpacked goes the way of plain text
            how = ("gz", "zst")[index // 4 % 2]
            yield fit(f"edges, {name}, {how}", f"e.csv.{how}", pack(data, how), expected)
    for name, (text, expected) in LARGE.items():
        yield fit(f"edges, {name}", "e.csv", lambda path, text=text: path.write_text(text()), expected)
    packed = pack(TABLE.encode(), "gz")
    yield fit("edges, gzip in gzip", "e.csv.gz", pack(packed, "gz"), r"e\.csv\.gz")
    yield fit("edges, two gzip members", "e.csv.gz", packed + pack(ROWS.encode(), "gz"), RING)
    yield fit("edges, gzip and more", "e.csv.gz", packed + b"more", r"damaged or cut off")
    yield fit("edges, gzip without its end", "e.csv.gz", packed[:-4], "damaged or cut off")
    yield fit("edges, gzip with another sum", "e.csv.gz", packed[:-8] + b"abcdefgh", "damaged or cut off")
    yield fit("edges, gzip, header alone", "e.csv.gz", packed[:10], "damaged or cut off|empty")
    yield fit("edges, zstd cut", "e.csv.zst", pack(TABLE.encode() * 9, "zst")[:-3], "damaged or cut off")
    yield fit("edges, called gz, is text", "e.csv.gz", TABLE, RING)
    yield fit("edges, called csv, is gzip", "e.csv", packed, RING)
    yield fit(
        "edges, bomb", "e.csv.gz", lambda path: bomb(path, b"a,b\n" * (5 << 20)), "unpacks to more than 200 times"
    )
    yield fit(
        "edges, bomb in a bomb", "e.csv.gz", lambda path: bomb(path, gzip.compress(bytes(1 << 26), 1)), r"e\.csv\.gz"
    )
    for flag, value, says in (
        ("--delimiter", "::", "delimiter must be one ASCII character"),
        ("--delimiter", "é", "delimiter must be one ASCII character"),
        ("--delimiter", "\n", "delimiter must be one ASCII character"),
        ("--delimiter", "x", "column"),
        ("--source", "nope", "both source and target|Unknown column"),
        ("--weight", "nope", "Unknown column"),
        ("--weight", "source", "another column"),
        ("--weight", "99999999999999999999", "Unknown column|position"),
        ("--limit", "10", "more than --limit 10 bytes"),
        ("--limit", "0", "limit must be"),
        ("--limit", "-5", "limit must be|--limit"),
        ("--direction", "up", "direction"),
        ("--features", "degre", "Did you mean 'degree'"),
        ("--edge-columns", "nope", "nope"),
        ("--label", "x", "give --nodes"),
        ("--nodes", "nowhere.csv", "No such file: nowhere.csv"),
        ("--nodes", ".", "is a folder without Parquet files"),
    ):  # fmt: skip
        yield fit(f"edges, {flag} {value!r}", "e.csv", TABLE, says, flag, value, "--features", "degree")
