"""The guide's page "With your own tools" runs, wherever the other library is installed."""

import re
from importlib.util import find_spec

import pytest

PAGE = "docs/how_to/stack.rst"
LIBRARIES = ("xgboost", "transformers", "lightning", "onnxruntime", "skl2onnx", "skops", "mlflow")


def _blocks(text):
    """Return the blocks of code on the page, as they would be pasted."""
    found = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", text)
    return [re.sub(r"(?m)^   ", "", block) for block in found]


def _needs(block):
    return {name for name in LIBRARIES if re.search(rf"(from|import) {name}\b", block)}


def _run(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file:{tmp_path}/runs")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    exec(compile(block, PAGE, "exec"), {"__name__": "__main__"})


def test_every_library_has_a_block(repository):
    blocks = _blocks((repository / PAGE).read_text())
    assert set().union(*map(_needs, blocks)) == set(LIBRARIES)


# What other libraries warn of is theirs.
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("library", [name for name in LIBRARIES if name != "onnxruntime"])
def test_block_runs(library, repository, tmp_path, monkeypatch):
    blocks = [b for b in _blocks((repository / PAGE).read_text()) if library in _needs(b)]
    block = min(blocks, key=lambda b: len(_needs(b)))  # that of MLflow needs skops as well
    missing = sorted(name for name in _needs(block) if find_spec(name) is None)
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    _run(block, tmp_path, monkeypatch)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("library", "name"), [("lightgbm", "LGBMClassifier"), ("catboost", "CatBoostClassifier")]
)
def test_other_boosting(library, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # catboost writes its logs here
    module = pytest.importorskip(library)
    from sklearn.datasets import make_classification

    from skcalib.posthoc import PostHocCalibratedClassifier
    from skcalib.selection import SelectiveClassifier

    X, y = make_classification(600, n_informative=5, random_state=0)
    model = getattr(module, name)(
        n_estimators=20, random_state=0, verbose=-1 if library == "lightgbm" else 0
    )
    calibrated = PostHocCalibratedClassifier(model, "auto", cv=3).fit(X[:300], y[:300])
    careful = SelectiveClassifier(model, risk=0.2, cv=3).fit(X[:300], y[:300])
    assert calibrated.score(X[300:], y[300:]) > 0.7
    assert careful.accept(X[300:]).any()
