"""Files from strangers: what is broken is refused in one sentence, at a linear cost."""

import gzip
import io
import random
import sys
import zipfile

import numpy as np
import pytest

from skcalib.labels import read_checks
from skcalib.report import _document, _files
from skcalib.report._read import read_predictions

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
P = RNG.random(20)
Y = (RNG.random(20) < P).astype(int)
FRAME = pd.DataFrame({"label": Y, "p_0": 1 - P, "p_1": P, "x": P})
CHECKS = (
    b"position,sample,label,true_label,answer,type\r\n"
    b"3,a,cat,dog,accept,str\r\n5,,1,2,other,int\r\n7,,x,,none,str\r\n"
)
PIECES = (b'"', b"\n", b",", b"1" * 50, b"9" * 5000, b"\xef\xbb\xbf", b"[", b"{", b"1e999", b"\0")


def packed(write):
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


def npz(**arrays):
    return packed(lambda file: np.savez_compressed(file, **arrays))


FORMS = {
    "p.csv": lambda: FRAME.to_csv(index=False).encode(),
    "p.csv.gz": lambda: gzip.compress(FRAME.to_csv(index=False).encode()),
    "p.json": lambda: FRAME.to_json(orient="records").encode(),
    "p.jsonl": lambda: FRAME.to_json(orient="records", lines=True).encode(),
    "p.npz": lambda: npz(y=Y, proba=np.column_stack([1 - P, P])),
    "p.parquet": lambda: packed(FRAME.to_parquet),
    "p.feather": lambda: packed(FRAME.to_feather),
    "checks.csv": lambda: CHECKS,
}


def mutate(data, rng):
    """Return bytes of which some are replaced, removed or repeated."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) or 1)
        how = rng.random()
        if how < 0.4 and data:
            data[at] = rng.choice(b'\0\r\n",;\t0-9x\xff[]{}')
        elif how < 0.6:
            del data[at]
        elif how < 0.7:
            del data[at : at + rng.randint(1, len(data) or 1)]
        else:
            data[at:at] = rng.choice(PIECES)
        data = data or bytearray(b"x")
    return bytes(data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FORMS)
def test_mutated_files_are_refused_in_one_sentence(name, tmp_path):
    if name in ("p.parquet", "p.feather"):
        pytest.importorskip("pyarrow")
    n = 40
    data, rng, refused = FORMS[name](), random.Random(0), 0
    path = tmp_path / name
    reader = read_checks if name == "checks.csv" else read_predictions
    path.write_bytes(data)
    reader(path)
    for _ in range(n):
        path.write_bytes(mutate(data, rng))
        try:
            reader(path)
        except ValueError as error:
            message = str(error)
            refused += 1
        else:
            continue
        assert len(message.replace(str(tmp_path), "")) <= 500
        assert "\n" not in message
    assert refused > n / 4


@pytest.mark.slow
def test_files_that_are_far_larger_unpacked_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "p.csv.gz"
    path.write_bytes(gzip.compress(b"label,p_1\n" + b" " * 10_000_000))
    with pytest.raises(ValueError, match="more than 200 times its size unpacked: unpack it first"):
        read_predictions(path)
    monkeypatch.setattr(_files, "SMALL", 10_000)
    path = tmp_path / "p.npz"
    path.write_bytes(npz(y=np.zeros(10**6), proba=np.zeros(10**6)))
    with pytest.raises(ValueError, match="more than 200 times its size unpacked"):
        read_predictions(path)
    path = tmp_path / "text.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no array")
    with pytest.raises(ValueError, match="whole npz file of arrays, got: other files than arrays"):
        read_predictions(path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, r"p\.npz must hold arrays with one row .*, got shapes of none\.$"),
        ({"y": np.zeros(10, "V8"), "p": P[:10]}, r"numbers or text, got y of \|V8\.$"),
        ({"y": Y[:10], "p": P[:10] + 0j}, r"numbers or text, got p of complex128\.$"),
        (
            {"y": np.array([1, None]), "p": P[:2]},
            r"got: Object arrays cannot be loaded .*=False\.$",
        ),
    ],
    ids=["empty", "void", "complex", "objects"],
)
def test_an_npz_of_other_arrays_is_refused(tmp_path, arrays, message):
    path = tmp_path / "p.npz"
    path.write_bytes(npz(**arrays))
    with pytest.raises(ValueError, match=message):
        read_predictions(path)


def test_a_small_parquet_of_many_rows_is_refused(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr(_files, "SMALL", 10_000)
    path = tmp_path / "p.parquet"
    pd.DataFrame({"label": np.zeros(10**6), "p_1": np.zeros(10**6)}).to_parquet(path)
    with pytest.raises(ValueError, match="more than 200 times its size unpacked"):
        read_predictions(path)


def row(i):
    return f"{i % 2},{0.1 + 0.8 * (i % 2)}"


def wide(cell):
    return lambda m: "\n".join(
        ["label,p_1," + ",".join(f"x{i}" for i in range(m))]
        + [f"{row(i)}," + ",".join([cell] * m) for i in range(4)]
    )


GROWING = {
    "rows": (500, lambda n: "label,p_1\n" + "\n".join(map(row, range(n)))),
    "columns of fractions": (200, wide("0.3")),
    "columns of words": (50, wide("word")),
    "columns of one name": (200, lambda m: wide("0.3")(m).replace("x1", "x2")),
    "empty lines above": (2000, lambda n: "\n" * n + "label,p_1\n0,0.2\n1,0.7\n0,0.4"),
    "classes": (
        100,
        lambda k: (
            "label,"
            + ",".join(f"p_{i}" for i in range(k))
            + "".join(f"\n{i * k // 4}," + ",".join([repr(1 / k)] * k) for i in range(4))
        ),
    ),
    "labels": (500, lambda n: "label,p_1\n" + "\n".join(f"c{i},0.5" for i in range(n))),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", GROWING)
def test_twice_the_size_takes_at_most_about_twice_the_calls(kind, tmp_path):
    path, counts = tmp_path / "p.csv", []
    start, make = GROWING[kind]
    for size in (start, start, 2 * start, 4 * start):  # the first one fills caches
        path.write_text(make(size))
        n_calls = 0

        def count(frame, event, argument):
            nonlocal n_calls
            n_calls += 1

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            read_predictions(path)
        except ValueError:
            pass
        finally:
            sys.setprofile(before)
        counts.append(n_calls)
    assert counts[3] - counts[2] <= 2.5 * max(counts[2] - counts[1], 100)


def test_cells_that_a_spreadsheet_would_compute_come_back(tmp_path):
    path = tmp_path / "checks.csv"
    path.write_text(
        "position,true_label,answer\n1,'=1+1,other\n2,''@x,other\n3,'tis,other\n4,-x,other\n"
    )
    assert read_checks(path)[1].tolist() == ["=1+1", "'@x", "'tis", "-x"]
    for text in ("position,true_label\n" + "9" * 30 + ",a", "position,true_label\n1,\0"):
        path.write_text(text)
        if "\0" not in text:
            with pytest.raises(ValueError, match=r"^position must be an integer, got '999"):
                read_checks(path)
    path.write_text('position,true_label\n1,"' + "x" * 200_000)
    with pytest.raises(ValueError, match="field larger than field limit"):
        read_checks(path)


def test_addresses_are_no_links_in_markdown():
    assert _document.escape("see WWW.x.org") == "see WWW&#46;x.org"
    assert ":" not in _document.escape("http://x").replace("&#58;", "")
