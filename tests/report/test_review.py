"""A page to check labels on: what the file holds, and what a browser makes of it."""

import json
import re
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from skcalib.datasets import flip_labels
from skcalib.difficulty import RMDScorer
from skcalib.labels import LabelIssueFinder, read_checks
from skcalib.report import LabelReviewPage
from skcalib.utils import SkcalibWarning

from . import browser

Image = pytest.importorskip("PIL.Image")
in_a_browser = pytest.mark.skipif(browser.FOUND is None, reason="needs Chromium")
NASTY = [
    "</script><script>alert(1)</script>",
    '"quoted", and\nbroken',
    "כלב",
    "<!-- <b>&amp;",
    "=1+1",
]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=5, return_X_y=True)
    given, _ = flip_labels(y, fraction=0.1, random_state=0)
    return X, y, given


@pytest.fixture(scope="module")
def fitted(digits):
    return LabelIssueFinder(RMDScorer()).fit(digits[0], digits[2])


@pytest.fixture
def finder(fitted):
    return deepcopy(fitted)  # draws belong to one test


def _named(digits, names):
    X, _, given = digits
    names = np.array(names, dtype=object)
    return LabelIssueFinder(RMDScorer()).fit(X, names[given])


def _data(path):
    html = path.read_text(encoding="utf-8")
    found = re.findall(r'<script id="data" type="application/json">(.*?)</script>', html, re.S)
    return json.loads(found[0]), html


@pytest.mark.slow
def test_the_file_does_not_know_what_is_suggested_for_random_checks(digits, finder, tmp_path):
    X = digits[0]
    suspects = np.flatnonzero(finder.issues_["is_issue"])
    rows = finder.draw_samples_to_check(40, random_state=0)
    more = finder.draw_samples_to_check(10, design="informative", exclude=rows, random_state=0)
    drawn, chosen = np.union1d(rows, more), np.setdiff1d(suspects, np.union1d(rows, more))[:9]
    positions = np.concatenate([drawn, chosen])
    LabelReviewPage.from_finder(finder, X, positions=positions).save(tmp_path / "page.html")
    samples = _data(tmp_path / "page.html")[0]["samples"]
    assert [s["position"] for s in samples] == positions.tolist()
    assert [s["drawn"] for s in samples] == [True] * 50 + [False] * 9
    assert [s["position"] for s in samples if "suggested" not in s] == drawn.tolist()
    classes = finder.classes_.tolist()
    shown = [classes[s["suggested"]] for s in samples[50:]]
    assert shown == finder.issues_["suggested_label"][chosen].tolist()


@pytest.mark.slow
def test_which_samples_without_being_told(digits, finder):
    X = digits[0]
    issues = finder.issues_
    suspects = LabelReviewPage.from_finder(finder, X).positions_
    assert set(suspects) == set(np.flatnonzero(issues["is_issue"]))
    assert (np.diff(issues["p_label_correct"][suspects]) >= 0).all()
    rows = finder.draw_samples_to_check(20, random_state=0)
    more = finder.draw_samples_to_check(30, exclude=rows, random_state=0)
    page = LabelReviewPage.from_finder(finder, X)
    np.testing.assert_array_equal(page.positions_, more)
    assert repr(page) == "LabelReviewPage: Check 30 labels"


@pytest.mark.slow
def test_everything_is_data_and_nothing_is_loaded(digits, tmp_path):
    finder = _named(digits, NASTY)
    X = digits[0]
    texts = [f"{name}\u2028\ud800\0" for name in NASTY] * (len(X) // 5) + NASTY[: len(X) % 5]
    index = pd.Index([f"<i>{i}" for i in range(len(X))])
    page = LabelReviewPage.from_finder(
        finder, pd.DataFrame(X, index=index), texts=texts, positions=[3, 1], title=NASTY[0]
    )
    page.save(tmp_path / "page.html")
    data, html = _data(tmp_path / "page.html")
    assert html.isascii() or "כלב" not in html
    assert {text for text, _ in data["classes"]} == set(NASTY)
    assert [s["name"] for s in data["samples"]] == ["<i>3", "<i>1"]
    assert [s["text"] for s in data["samples"]] == [texts[3], texts[1]]
    assert html.count("<script") == 2
    assert "<i>3" not in html
    assert not re.findall(r"(?:https?:)?//\w[\w.]*\.\w+|@import|url\(", html)
    assert "default-src 'none'" in html
    assert page._repr_html_().count("<") == 2  # one element, the page as its attribute


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["array", "pillow", "file"])
def test_500_photographs_take_less_than_20_mb(kind, tmp_path):
    from PIL import Image

    rng = np.random.RandomState(0)
    # Noise is the worst that a picture can be.
    pictures = rng.randint(0, 256, (3, 240, 320, 3)).astype(np.uint8)
    y = np.arange(500) % 2
    proba = np.where(y[:, None] == [0, 1], 0.7, 0.3)
    finder = LabelIssueFinder("precomputed").fit(proba, y)
    images = [pictures[i % 3] for i in range(500)]
    if kind == "pillow":
        images = [Image.fromarray(image) for image in images]
    if kind == "file":
        paths = [tmp_path / f"{i}.png" for i in range(3)]
        for path, picture in zip(paths, pictures):
            Image.fromarray(picture).save(path)
        images = [paths[i % 3] for i in range(500)]
    n_shown = 500 if kind == "file" else 60
    page = LabelReviewPage.from_finder(finder, images=images, positions=np.arange(n_shown))
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 20e6 * n_shown / 500 or n_shown < 500
    if kind == "file":
        assert page.data_["samples"][4]["name"] == "1.png"
    else:
        assert "name" not in page.data_["samples"][4]
    if n_shown < 500:  # fewer samples are larger
        assert len(page.data_["samples"][0]["image"]) > 34_000


@pytest.mark.slow
def test_what_is_shown_of_a_row_and_of_a_long_text(digits, finder):
    from scipy.sparse import csr_array

    X = digits[0]
    (sample,) = LabelReviewPage.from_finder(finder, X, positions=[3]).data_["samples"]
    assert sample["row"][:2] == [("column 0", "0"), ("column 1", "0")]
    assert (len(sample["row"]), sample["more"]) == (40, "and 24 more columns")
    frame = pd.DataFrame(X[:, :2], columns=["age", "b"]).assign(age=1 / 3, c="x")
    (sample,) = LabelReviewPage.from_finder(finder, frame, positions=[3]).data_["samples"]
    assert sample["row"] == [("age", "0.333333"), ("b", f"{X[3, 1]:g}"), ("c", "x")]
    (sample,) = LabelReviewPage.from_finder(finder, csr_array(X), positions=[3]).data_["samples"]
    ink = np.flatnonzero(X[3])[:40]
    assert dict(sample["row"]) == {f"column {i}": f"{X[3, i]:g}" for i in ink}
    texts = ["y" * 20_001] * len(X)
    (sample,) = LabelReviewPage.from_finder(finder, texts, positions=[3]).data_["samples"]
    assert (len(sample["text"]), sample["more"]) == (20_000, "The first 20000 of 20001 letters.")


@pytest.mark.slow
def test_what_cannot_be_shown_is_refused(digits, finder):
    X, _, given = digits
    for wrong, what in [
        ({}, "nothing to show"),
        ({"X": X[:-1]}, f"X must have one entry for each of the {len(X)} samples"),
        ({"texts": ["a"]}, "texts must have one entry"),
        ({"X": X, "positions": [1, 1]}, "positions must be distinct"),
        ({"X": X, "positions": [len(X)]}, f"from 0 to {len(X) - 1}"),
        ({"X": X, "positions": [0.5]}, "positions must be integers"),
        ({"X": X, "positions": []}, "nothing to check"),
    ]:
        with pytest.raises(ValueError, match=what):
            LabelReviewPage.from_finder(finder, **wrong)
    proba = np.eye(5)[given] / 2 + 0.1
    judged = LabelIssueFinder("precomputed").fit(proba, given)
    with pytest.raises(ValueError, match="which would bias the answers"):
        LabelReviewPage.from_finder(judged, proba)
    assert LabelReviewPage.from_finder(judged, X, positions=[0]).data_["samples"][0]["row"]
    with pytest.raises(ValueError, match=r"found no issues .*draw_samples_to_check"):
        LabelReviewPage.from_finder(judged, X)


@in_a_browser
def test_a_person_checks_labels_in_a_browser(digits, tmp_path):
    finder = _named(digits, NASTY)
    images = digits[0].reshape(-1, 8, 8)
    rows = finder.draw_samples_to_check(6, random_state=1)
    suspects = np.setdiff1d(np.flatnonzero(finder.issues_["is_issue"]), rows)[:2]
    page = LabelReviewPage.from_finder(
        finder, images=images, positions=np.concatenate([suspects, rows])
    )
    page.save(tmp_path / "page.html")
    given, suggested = (finder.issues_[name] for name in ("label", "suggested_label"))
    with browser.Browser(tmp_path) as tab:
        tab.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
        tab.open(tmp_path / "page.html")

        def shown():
            text = re.sub("[\u2068\u2069]", "", tab.text("#question"))
            return text.removeprefix("Is this \u201c").removesuffix("\u201d?")

        def flat(text):  # as HTML shows it
            return " ".join(text.split())

        assert tab.text("#status") == "0 of 8 \u00b7 saved in this browser"
        assert flat(shown()) == flat(given[suspects[0]])
        assert "none" not in tab.run("getComputedStyle(document.querySelector('#accept')).display")
        key = {name: str(k) for k, name in enumerate(finder.classes_, 1)}
        assert tab.run("document.querySelectorAll('#classKeys button').length") == 5
        assert tab.run("document.querySelector('#keep').hidden")
        tab.press(key[suggested[suspects[0]]])  # as A
        tab.press(key[given[suspects[1]]])  # keep
        assert tab.run("[state.answers[0].how, state.answers[1].how]") == ["accept", "keep"]
        assert tab.run("document.querySelector('#accept').hidden")
        assert "drawn at random" in tab.text("#note")
        tab.press("a")  # nothing to accept
        assert tab.text("#status").startswith("2 of 8")
        tab.press("n")  # none of the classes
        other = next(name for name in NASTY if name != given[rows[1]])
        tab.press(key[other])
        tab.press("9", "0", "k")  # no keys
        tab.press("?")
        tab.press("n", "z")  # undone
        assert tab.text("#status").startswith("5 of 8")
        assert flat(shown()) == flat(given[rows[3]])
        for _ in range(5):  # progress is kept, and what can be undone; a busy browser reads late
            tab.open(tmp_path / "page.html")
            if tab.text("#status").startswith("5"):
                break
        assert tab.text("#status").startswith("5 of 8")
        tab.press("z")
        assert tab.text("#status").startswith("4 of 8")
        tab.press("?", key[given[rows[3]]], "ArrowLeft")
        pressed = "document.querySelector('#classKeys [aria-pressed=true]').innerText"
        assert flat(given[rows[3]]) in flat(re.sub("[\u2068\u2069]", "", tab.run(pressed)))
        tab.press("ArrowRight", key[given[rows[4]]], key[given[rows[5]]])
        assert tab.text("#unsure").endswith("leave it out")  # asked again at the end
        tab.press("?")
        assert tab.text("#result") == "All 8 labels are checked."
        assert tab.text("#counts") == "4 kept, 2 changed, 1 none of the classes, 1 unsure."
        tab.run("document.querySelector('#download').click()")
        for _ in range(100):
            if (tmp_path / "checks.csv").exists():
                break
            tab.run("new Promise(done => setTimeout(done, 50))")
        assert tab.problems() == []
        assert tab.run("document.querySelectorAll('script').length") == 2
    positions, labels = read_checks(tmp_path / "checks.csv")
    expected = {
        suspects[0]: suggested[suspects[0]],
        suspects[1]: given[suspects[1]],
        rows[0]: None,
        rows[1]: other,
        **{row: given[row] for row in rows[3:]},
    }
    assert dict(zip(positions.tolist(), labels.tolist())) == expected
    with (
        pytest.warns(SkcalibWarning, match="1 of the 7 answers are missing values"),
        pytest.warns(SkcalibWarning, match="1 of the 6 samples that were drawn have no answer"),
    ):
        finder.update_with_checks(positions, labels)
    assert finder.issues_["p_label_correct"][rows[0]] == 0
    assert finder.issues_["suggested_label"][rows[1]] == other


@in_a_browser
def test_ten_classes_are_searched_and_digits_are_their_own_keys(tmp_path):
    X, y = load_digits(return_X_y=True)
    names = np.array([f"class {k}" for k in "abcdefghij"])
    for labels in (y, names[y]):
        finder = LabelIssueFinder(RMDScorer()).fit(X, labels)
        finder.draw_samples_to_check(4, random_state=0)
        page = LabelReviewPage.from_finder(finder, X)
        page.save(tmp_path / f"{labels.dtype.kind}.html")
    with browser.Browser(tmp_path) as tab:
        tab.open(tmp_path / "i.html")
        tab.press("7")
        assert tab.run("state.answers[0].to") == 7
        tab.open(tmp_path / "U.html")
        assert tab.run("document.querySelectorAll('#classKeys button').length") == 0
        given = tab.run("samples.map(sample => sample.given)")
        other = next(k for k in range(9, -1, -1) if k != given[1])
        tab.press("1", "2", *names[other], "Enter", "3", "?")
        how = tab.run("Object.values(state.answers).map(answer => answer.how)")
        assert how == ["keep", "other", "none", "unsure"]
        assert tab.run("state.answers[1].to") == other
        assert tab.problems() == []


@in_a_browser
@pytest.mark.slow
def test_ten_thousand_samples_scroll(tmp_path):
    n = 10_000
    y = np.random.default_rng(0).integers(3, size=n)
    finder = LabelIssueFinder("precomputed").fit(0.7 * np.eye(3)[y] + 0.1, y)
    page = LabelReviewPage.from_finder(
        finder, texts=[f"text {i}" for i in range(n)], positions=np.arange(n)
    )
    page.save(tmp_path / "page.html")
    with browser.Browser(tmp_path) as tab:
        tab.open(tmp_path / "page.html")
        buttons = "document.querySelectorAll('#strip button')"
        assert tab.run(f"{buttons}.length") < 40
        tab.run("at('strip').scrollLeft = 1e9")
        tab.wait("stripButtons.has(9999)")
        assert tab.run(f"{buttons}.length") < 40
        tab.run("stripButtons.get(9998).click()")
        assert tab.text("#shown") == "text 9998"
        tab.press("1", "2")
        # After the last one, the first without an answer.
        assert tab.text("#shown") == "text 0"
        assert tab.text("#status").startswith("2 of 10000")
        assert tab.run("stripButtons.has(0)")
        assert tab.problems() == []


@in_a_browser
def test_two_classes_and_a_browser_that_keeps_nothing(tmp_path):
    X, y = load_digits(n_class=2, return_X_y=True)
    finder = LabelIssueFinder().fit(X, y)
    finder.draw_samples_to_check(3, random_state=0)
    page = LabelReviewPage.from_finder(finder, X)
    # A notebook may show it in a frame that has no storage.
    frame = page._repr_html_().replace("<iframe ", '<iframe sandbox="allow-scripts" ')
    Path(tmp_path / "notebook.html").write_text(f"<!DOCTYPE html><title>a</title>{frame}")
    page.save(tmp_path / "page.html")
    with browser.Browser(tmp_path) as tab:
        tab.open(tmp_path / "page.html")
        tab.run("Storage.prototype.setItem = () => { throw new Error('full') }")
        tab.press(str(1 - tab.run("samples[0].given")))  # the other class, without a search
        assert "download before you leave" in tab.text("#status")
        assert tab.run("state.answers[0].how") == "other"
        tab.run("downloaded = true")  # else it asks before it is left
        tab.open(tmp_path / "notebook.html")
        assert tab.problems() == []


@pytest.mark.slow
def test_an_image_that_cannot_be_read_is_a_text_on_the_page(tmp_path):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    finder = LabelIssueFinder().fit(X, y)
    good, broken = tmp_path / "good.png", tmp_path / "broken.png"
    Image.fromarray(np.eye(8, dtype=np.uint8)).save(good)
    broken.write_bytes(good.read_bytes()[:40])
    files = [good] * 298 + [broken, tmp_path / "none.png"]
    with pytest.warns(SkcalibWarning, match=r"image of sample 29[89] cannot be shown: .*\.png"):
        page = LabelReviewPage.from_finder(finder, images=files, positions=[0, 298, 299])
    first, *others = page.data_["samples"]
    assert first["image"].startswith("data:image/png")
    for sample, name in zip(others, ("broken.png", "none.png")):
        assert "image" not in sample
        assert name in sample["text"]


@pytest.mark.slow
def test_a_table_of_pyarrow_is_shown_row_by_row():
    arrow = pytest.importorskip("pyarrow")
    X, y = load_digits(return_X_y=True)
    finder = LabelIssueFinder().fit(X[:300], y[:300])
    table = arrow.table({f"p{j}": X[:300, j] for j in range(64)})
    page = LabelReviewPage.from_finder(finder, table, positions=[2, 70])
    shown = [dict(sample["row"]) for sample in page.data_["samples"]]
    assert [row["p5"] for row in shown] == [f"{X[2, 5]:.6g}", f"{X[70, 5]:.6g}"]
