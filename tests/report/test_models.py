"""The command compare: models in several files, or in the columns of one; and percentages."""

import re

import numpy as np
import pytest

from skcalib.__main__ import main
from skcalib.datasets import make_predictions
from skcalib.report import CalibrationReport
from skcalib.report import _report as reports

pd = pytest.importorskip("pandas")

NAMES = np.array(["cat", "cow", "dog"])
Y, NEW, _ = make_predictions(300, n_classes=3, random_state=0)
OLD = NEW**3 / (NEW**3).sum(axis=1, keepdims=True)


def frame(**models):
    columns = {"label": NAMES[Y]}
    for form, proba in models.items():
        columns |= {form.replace("K", name): p for name, p in zip(NAMES, proba.T)}
    return pd.DataFrame(columns)


@pytest.fixture
def given(monkeypatch):
    """What the command passes to `CalibrationReport.compare`."""
    seen = {}

    def compare(probas, y_true, **options):
        seen.update(probas=probas, y_true=y_true, **options)
        results = {"summary": {"kind": "comparison", "headline": "Compared."}}
        report = reports.CalibrationReport(results)
        report.save = lambda path: None
        return report

    monkeypatch.setattr(reports.CalibrationReport, "compare", staticmethod(compare))
    return seen


def run(tmp_path, *arguments):
    return main(["compare", *map(str, arguments), "-o", str(tmp_path / "page.html")])


def check_given(given, old=OLD, new=NEW, atol=1e-12):
    assert list(given["probas"]) == ["old", "new"]
    for name, proba in {"old": old, "new": new}.items():
        np.testing.assert_allclose(given["probas"][name], proba, rtol=0, atol=atol)


@pytest.mark.parametrize("forms", [("old_K", "new_K"), ("K.old", "K.new"), ("old K", "new K")])
def test_columns_of_one_file(tmp_path, given, forms):
    path = tmp_path / "p.csv"
    frame(**dict(zip(forms, (OLD, NEW)))).to_csv(path, index=False)
    assert run(tmp_path, path, "--models", "old", "new") == 0
    check_given(given)
    assert given["labels"] == NAMES.tolist()
    np.testing.assert_array_equal(given["y_true"], NAMES[Y])


def test_a_file_for_each_model(tmp_path, given, capsys):
    frame(K=OLD).assign(w=np.arange(300) % 3, patient=np.arange(300) // 2).to_csv(
        tmp_path / "old.csv", index=False
    )
    # Other forms of the columns, in another order, and a list in one cell.
    frame(p_K=NEW)[["p_dog", "label", "p_cow", "p_cat"]].to_csv(tmp_path / "new.csv", index=False)
    paths = tmp_path / "old.csv", tmp_path / "new.csv"
    assert run(tmp_path, *paths) == 0
    check_given(given)
    said = capsys.readouterr()
    assert said.out == f"Compared.\n{tmp_path / 'page.html'}\n"
    assert "old: Read 300 rows" in said.err
    assert "new: Read 300 rows" in said.err
    frame(K=NEW).assign(w=1, patient=1).to_csv(tmp_path / "new.csv", index=False)
    assert run(tmp_path, *paths, "--weight", "w", "--groups", "patient") == 0
    np.testing.assert_array_equal(given["sample_weight"], np.arange(300) % 3)
    assert len(np.unique(given["groups"])) == 150


def test_one_column_a_model(tmp_path, given):
    path = tmp_path / "p.csv"
    table = pd.DataFrame({"label": 1 * (Y > 0), "old": OLD[:, 0], "new": 1 - NEW[:, 0]})
    table.to_csv(path, index=False)
    assert run(tmp_path, path, "--models", "old", "new") == 0
    check_given(given, OLD[:, 0], 1 - NEW[:, 0])
    assert given["pos_label"] == "1"
    assert run(tmp_path, path, "--models", "old", "new", "--pos-label", "0") == 0
    assert given["pos_label"] == "0"
    # One file has both columns, the other the positive one alone.
    table[["label", "new"]].rename(columns={"new": "p_1"}).to_csv(
        tmp_path / "new.csv", index=False
    )
    both = table[["label"]].assign(**{"0": 1 - table["old"], "1": table["old"]})
    both.to_csv(tmp_path / "old.csv", index=False)
    assert run(tmp_path, tmp_path / "old.csv", tmp_path / "new.csv") == 0
    expected = (np.column_stack([1 - p, p]) for p in (table["old"], table["new"]))
    check_given(given, *expected)


def test_different_samples(tmp_path, given, capsys):
    frame(K=OLD).to_csv(tmp_path / "old.csv", index=False)
    frame(K=NEW)[:200].to_csv(tmp_path / "new.csv", index=False)
    paths = tmp_path / "old.csv", tmp_path / "new.csv"
    assert run(tmp_path, *paths) == 2
    assert "got 300 and 200 samples; --different-samples" in capsys.readouterr().err
    assert run(tmp_path, *paths, "--different-samples") == 0
    check_given(given, OLD, NEW[:200])
    np.testing.assert_array_equal(given["y_true"]["new"], NAMES[Y[:200]])


def test_what_is_refused(tmp_path, capsys):
    path, other = tmp_path / "p.csv", tmp_path / "other.csv"
    frame(old_K=OLD, new_K=NEW).to_csv(path, index=False)
    frame(K=NEW).iloc[::-1].to_csv(other, index=False)
    frame(K=NEW).to_csv(tmp_path / "same.csv", index=False)
    faults = {
        (path,): "predictions must be two files or more, or models the names of columns",
        (path, "--models", "old"): r"models must be two or more distinct names, got",
        (path, "--models", "old", "old"): "models must be two or more distinct names",
        (path, "--models", "old", "neu"): "models must name columns of .* got 'neu'",
        (path, other, "--models", "old", "new"): "models must be None with several files",
        (tmp_path / "same.csv", other): "must hold the same samples in the same order, got the",
        (tmp_path / "missing.csv", other): "must be a file that can be opened",
    }
    for arguments, message in faults.items():
        assert run(tmp_path, *arguments) == 2
        error = capsys.readouterr().err
        assert error.startswith("python -m skcalib compare: ")
        assert len(error) < 600
        assert re.search(message, error)
    assert main(["compare", str(path), "--models", "old", "new", "-o", str(path)]) == 2


@pytest.mark.slow
def test_the_page_of_a_comparison(tmp_path, capsys):
    path = tmp_path / "p.csv"
    frame(old_K=OLD, new_K=NEW).to_csv(path, index=False)
    assert (
        main(["compare", str(path), "--models", "old", "new", "-o", str(tmp_path / "c.md")]) == 0
    )
    expected = CalibrationReport.compare({"old": OLD, "new": NEW}, NAMES[Y])
    assert capsys.readouterr().out.startswith(expected.results_["summary"]["headline"])
    assert "old" in (tmp_path / "c.md").read_text()


@pytest.mark.parametrize("digits", [0, 1, 6])
def test_percentages(tmp_path, given, digits):
    path = tmp_path / "p.csv"
    table = frame(old_K=100 * OLD, new_K=100 * NEW).round(digits)
    table.to_csv(path, index=False)
    assert run(tmp_path, path, "--models", "old", "new", "--percent") == 0
    rounded = [table[[f"{m}_{k}" for k in NAMES]].to_numpy() for m in ("old", "new")]
    # Rows that are nearly 1 are left as they are.
    proba = (p / p.sum(axis=1, keepdims=True) for p in rounded)
    check_given(given, *proba, atol=2 * 0.1 ** (2 + digits))


def test_percentages_of_the_other_commands(tmp_path, capsys):
    path = tmp_path / "p.csv"
    # All of a rare class are below 1 %; an answer is no percentage.
    rng = np.random.default_rng(0)
    p = rng.uniform(0, 0.9, 3000)
    y = rng.random(3000) < p / 100
    pd.DataFrame({"label": 1 * y, "p_1": p, "seen": 1}).to_csv(path, index=False)
    check = ["check", str(path), "--max-error", ".05"]
    assert main([*check, "--percent"]) == 0
    said = capsys.readouterr()
    assert "probabilities: p_1 (of 1), percentages divided by 100" in said.err
    assert main(check) == 1  # half of the samples
    state = ["--state", str(tmp_path / "state.json"), "--percent"]
    assert main(["monitor", str(path), *state]) == 0
    truth = rng.integers(0, 3, 500)
    answers = pd.DataFrame(
        {"label": truth, "prediction": np.where(rng.random(500) < 0.8, truth, 2)}
    ).assign(confidence=85)
    answers.to_csv(path, index=False)
    capsys.readouterr()
    assert main(["check", str(path), "--max-error", ".2", "--percent"]) == 0
    assert "percentages divided by 100" in capsys.readouterr().err
    pd.DataFrame({"label": 1 * y, "logit": p}).to_csv(path, index=False)
    assert main([*check, "--percent"]) == 2
    assert "percent must be False for logits" in capsys.readouterr().err
