"""What people come with: the shortest lines of the guide for a task, and what comes out."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skcalib import (
    LabelCleaningClassifier,
    LabelIssueFinder,
    NoveltyDetector,
    PostHocCalibratedClassifier,
    SelectiveClassifier,
    SubsetClassifier,
    calibration_error_interval,
    compare_calibration,
    expected_calibration_error,
)
from skcalib.datasets import flip_labels
from skcalib.difficulty import KNNScorer, PredictionDepthScorer, RMDScorer
from skcalib.labels import votes_from_long
from skcalib.metrics import (
    CalibrationAccumulator,
    CalibrationMonitor,
    groupwise_calibration_error,
    multilabel_calibration_error,
    prediction_powered_interval,
)
from skcalib.posthoc import PriorShift, StackedCalibration, TemperatureScaling
from skcalib.selection import MaxEntropySelector


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / 16, y, train_size=900, random_state=0)


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return train_test_split(X, y, train_size=300, random_state=0)


@pytest.fixture(scope="module")
def people():
    """A table of mixed columns and what people do."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"age": rng.normal(50, 10, 800), "city": rng.choice(["Bern", "Oslo", "Rome"], 800)}
    )
    score = (table["age"] - 50) / 6 + 2 * (table["city"] == "Oslo") - 1
    return table, pd.Series(np.where(score + rng.normal(0, 0.3, 800) > 0, "buys", "leaves"))


def columns():
    return make_column_transformer((OneHotEncoder(), ["city"]), (StandardScaler(), ["age"]))


def command(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "skcalib", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_a_trained_model_is_judged_and_repaired():
    X, y = make_classification(2000, n_informative=4, n_redundant=8, flip_y=0.1, random_state=0)
    model = GaussianNB().fit(X[:500], y[:500])
    repaired = PostHocCalibratedClassifier(FrozenEstimator(model)).fit(X[500:1000], y[500:1000])
    before, after = (
        calibration_error_interval(y[1000:], m.predict_proba(X[1000:]), random_state=0)
        for m in (model, repaired)
    )
    assert before[0] > after[1]


@pytest.mark.slow
def test_a_pipeline_with_categories_is_calibrated_as_a_whole_or_at_its_end(people):
    table, y = people
    whole = PostHocCalibratedClassifier(make_pipeline(columns(), GaussianNB()))
    end = make_pipeline(columns(), PostHocCalibratedClassifier(GaussianNB()))
    for model in (whole, end):
        model.fit(table[:500], y[:500])
        assert model.score(table[500:], y[500:]) > 0.85
        assert model.classes_.tolist() == ["buys", "leaves"]


@pytest.mark.slow
def test_at_most_five_percent_of_the_answers_are_wrong(digits):
    X, X_test, y, y_test = digits
    careful = SelectiveClassifier(LogisticRegression(max_iter=300), risk=0.05).fit(X, y)
    answered = careful.accept(X_test)
    assert answered.mean() > 0.8
    assert (careful.predict(X_test) != y_test)[answered].mean() <= 0.05


def test_every_answer_has_a_limit_of_its_own(people):
    table, y = people
    model = make_pipeline(columns(), LogisticRegression()).fit(table[:200], y[:200])
    limits = {"buys": 0.05, "leaves": 0.2}
    careful = SelectiveClassifier(FrozenEstimator(model), risk=limits).fit(table[200:], y[200:])
    assert (careful.risk_bound_ <= list(limits.values())).all()
    assert set(careful.predict(table)) == {"buys", "leaves", "reject"}


def test_several_people_labeled():
    rng = np.random.default_rng(0)
    true = rng.choice(["cat", "dog"], 200)
    other = np.where(true == "cat", "dog", "cat")
    skill = [0.95, 0.9, 0.6]
    said = np.stack([np.where(rng.random(200) < s, true, other) for s in skill])
    samples, who = np.tile(np.arange(200), 3), np.repeat(["ann", "bob", "eve"], 200)
    votes = votes_from_long(samples, who, said.ravel())
    finder = LabelIssueFinder().fit(None, votes=votes)
    assert (finder.issues_["label"] == true).mean() > 0.9
    annotators = finder.annotators_
    assert annotators["annotator"][annotators["accuracy"].argmin()] == "eve"


@pytest.mark.slow
def test_shares_of_people_are_labels(digits):
    X, X_test, y, y_test = digits
    model = LogisticRegression(max_iter=300).fit(X, y)
    shares = 0.8 * np.eye(10)[y_test] + 0.02
    calibrated = PostHocCalibratedClassifier(FrozenEstimator(model)).fit(X_test, shares)
    before, after = (
        expected_calibration_error(shares, m.predict_proba(X_test)) for m in (model, calibrated)
    )
    assert after < before / 2


def test_an_ai_labels_and_some_are_checked():
    rng = np.random.default_rng(0)
    y = rng.choice(["no", "yes"], 2000)
    proba = np.clip(0.5 + np.where(y == "yes", 0.3, -0.3) + rng.normal(0, 0.3, 2000), 0, 1)
    ai = np.where(rng.random(2000) < 0.1, np.where(y == "yes", "no", "yes"), y)
    checked = rng.choice(2000, 200, replace=False)
    low, high = prediction_powered_interval(
        y[checked], proba, ai, checked=checked, pos_label="yes"
    )
    assert low < ((proba > 0.5) == (y == "yes")).mean() < high


@pytest.mark.slow
def test_wrong_test_labels_do_not_judge_the_model(digits):
    X, X_test, y, y_test = digits
    proba = GaussianNB(var_smoothing=0.01).fit(X, y).predict_proba(X_test)
    given, _ = flip_labels(y_test, fraction=0.1, random_state=0)
    finder = LabelIssueFinder().fit(X_test, given)
    truth, naive, judged = (
        expected_calibration_error(labels, proba)
        for labels in (y_test, given, finder.label_proba_)
    )
    assert abs(judged - truth) < abs(naive - truth) / 3


@pytest.mark.slow
def test_wrong_labels_of_a_mixed_table(people):
    table, y = people
    given = y.copy()
    given[::12] = y[::12].map({"buys": "leaves", "leaves": "buys"})
    finder = make_pipeline(columns(), LabelIssueFinder()).fit(table, given)[-1]
    found = finder.issues_["is_issue"]
    assert (given != y)[found].mean() > 0.8
    for fit in (LabelIssueFinder().fit, LabelCleaningClassifier(GaussianNB()).fit):
        with pytest.raises(ValueError, match=r"'city'.*make_pipeline\(ColumnTransformer"):
            fit(table, given)


@pytest.mark.slow
def test_a_page_to_check_labels_on(people, tmp_path):
    report = pytest.importorskip("skcalib.report")
    table, y = people
    finder = LabelIssueFinder().fit(columns().fit_transform(table), y)
    finder.draw_samples_to_check(30, random_state=0)
    page = report.LabelReviewPage.from_finder(finder, table)
    page.save(tmp_path / "review.html")
    assert repr(page) == "LabelReviewPage: Check 30 labels"
    assert "Oslo" in (tmp_path / "review.html").read_text()


@pytest.mark.slow
def test_patients_with_several_visits_stay_together(cancer):
    X, X_test, y, y_test = cancer
    model = PostHocCalibratedClassifier(GaussianNB()).fit(X, y, groups=np.arange(300) // 3)
    proba = model.predict_proba(X_test)
    one, doubled = np.arange(len(y_test)), np.tile(np.arange(len(y_test)), 2)
    alone = np.diff(calibration_error_interval(y_test, proba, random_state=0))
    y_test, proba = y_test[doubled], proba[doubled]
    together = np.diff(
        calibration_error_interval(y_test, proba, groups=np.tile(one, 2), random_state=0)
    )
    assert together == pytest.approx(alone, rel=0.25)


@pytest.mark.slow
def test_two_models_are_compared(cancer):
    X, X_test, y, y_test = cancer
    probas = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "Bayes": GaussianNB(),
    }
    probas = {name: m.fit(X, y).predict_proba(X_test)[:, 1] for name, m in probas.items()}
    table = compare_calibration(y_test, probas, random_state=0)
    assert table["model"].tolist() == ["logistic", "Bayes"]
    assert table["gain"][1] > table["gain"][0]
    assert table["pvalue"][1] < 0.05


def test_for_whom_is_it_wrong():
    rng = np.random.default_rng(0)
    proba, site = rng.random(1000), rng.choice(["north", "south"], 1000)
    y = rng.random(1000) < np.where(site == "north", proba, proba**3)
    table = groupwise_calibration_error(y, proba, site, random_state=0)
    assert (table["pvalue"] < 0.05).tolist() == [False, True]


def test_the_classes_are_rarer():
    rng = np.random.default_rng(0)

    def logits(n, frequency):
        return 2 * (rng.normal(size=n) + 2 * (rng.random(n) < frequency)) - 2

    known = PriorShift(priors=[0.9, 0.1], training_priors=[0.5, 0.5])
    estimated = PriorShift(training_scores=logits(1000, 0.5))
    new = logits(3000, 0.1)
    for shift in (known, estimated):
        assert shift.fit(new).predict_proba(new)[:, 1].mean() == pytest.approx(0.1, abs=0.03)


def test_a_model_in_use_is_monitored_every_day():
    rng = np.random.default_rng(0)
    monitor = CalibrationMonitor(false_alarm_rate=0.01)
    for day in range(30):
        proba = rng.random(100)
        y = rng.random(100) < (proba if day < 10 else proba**2)
        monitor.update(y.astype(int), proba, name=f"day {day}")
        monitor = CalibrationMonitor.from_json(monitor.to_json())
        if monitor.alarm_:
            break
    assert 10 <= day < 20


@pytest.mark.slow
def test_a_file_of_predictions_in_ci(tmp_path):
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    proba = rng.random(400)
    churn = np.where(rng.random(400) < proba**3, "yes", "no")
    lines = [f"{a},{b}" for a, b in zip(churn, proba.tolist())]
    (tmp_path / "file.csv").write_text("\n".join(["churn,score", *lines]))
    file = ["file.csv", "--label", "churn", "--pos-label", "yes"]
    said = command(tmp_path, "check", *file, "--max-error", ".05")
    assert (said.returncode, said.stdout[:6]) == (1, "Fails:")


@pytest.mark.slow
def test_the_default_map_leaves_python(cancer):
    X, X_test, y, _ = cancer
    model = PostHocCalibratedClassifier(make_pipeline(StandardScaler(), LogisticRegression()))
    model = model.fit(X, y)
    assert json.loads(model.calibrator_.to_json())["classes"] == [0, 1]
    pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    from skl2onnx import to_onnx

    import skcalib.onnx  # noqa: F401

    X_test = X_test.astype(np.float32)
    exported = to_onnx(model, X_test[:1], options={"zipmap": False}).SerializeToString()
    _, proba = runtime.InferenceSession(exported).run(None, {"X": X_test})
    np.testing.assert_allclose(proba, model.predict_proba(X_test), atol=1e-5)


@pytest.mark.slow
def test_a_model_is_saved_without_pickle(cancer, tmp_path):
    io = pytest.importorskip("skops.io")
    import skcalib

    X, X_test, y, _ = cancer
    careful = SelectiveClassifier(GaussianNB(), risk=0.2).fit(X, y)
    io.dump(careful, tmp_path / "model.skops")
    loaded = io.load(tmp_path / "model.skops", trusted=skcalib.trusted_types())
    assert (loaded.accept(X_test) == careful.accept(X_test)).all()


def test_dask_arrays():
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(0)
    y, logits = rng.integers(0, 3, 2000), 2 * rng.normal(size=(2000, 3))
    logits[np.arange(2000), y] += 2
    Z, labels = da.from_array(logits, chunks=(500, 3)), da.from_array(y, chunks=500)
    proba = TemperatureScaling().fit(Z, labels).predict_proba(Z)
    at_once = expected_calibration_error(y, proba.compute())
    in_chunks = CalibrationAccumulator().update(labels, proba).result()
    assert in_chunks == pytest.approx(at_once)
    with pytest.raises(TypeError, match=r"\[::100\]\.compute\(\)"):
        calibration_error_interval(labels, proba)


def test_a_stream_of_batches():
    rng = np.random.default_rng(0)
    proba = rng.random(500)
    y = np.where(rng.random(500) < proba, "dog", "cat")
    total = CalibrationAccumulator(pos_label="dog")
    for start in range(0, 500, 100):
        total.update(y[start : start + 100], proba[start : start + 100])
    at_once = expected_calibration_error(y, proba, pos_label="dog")
    assert total.result() == pytest.approx(at_once)


@pytest.mark.slow
def test_hard_samples_and_late_answers(digits):
    from sklearn.neural_network import MLPClassifier

    X, X_test, y, y_test = digits
    difficulty = RMDScorer().fit(X, y).difficulty(X_test)
    net = MLPClassifier((32,), early_stopping=True, random_state=0)
    depth = PredictionDepthScorer(net, undefined="hardest").fit(X[:400], y[:400])
    wrong = depth.estimator_.predict(X_test) != y_test
    late = depth.difficulty(X_test) > 0
    assert difficulty[wrong].mean() > difficulty[~wrong].mean()
    assert wrong[late].mean() > wrong[~late].mean()


def test_inputs_never_seen(digits):
    X, X_test, y, _ = digits
    detector = NoveltyDetector(KNNScorer(n_neighbors=5), contamination=0.05).fit(X, y)
    assert (detector.predict(X_test) == -1).mean() < 0.1
    noise = np.random.default_rng(0).random((50, 64))
    assert (detector.predict(noise) == -1).all()


def test_a_part_of_the_training_samples(digits):
    X, X_test, y, y_test = digits
    model = LogisticRegression(max_iter=300)
    selector = MaxEntropySelector(model, criterion="random", fraction=0.3, random_state=0)
    assert SubsetClassifier(model, selector).fit(X, y).score(X_test, y_test) > 0.85


@pytest.mark.slow
def test_several_labels_a_sample():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    Y = (X[:, :3] + rng.normal(size=(900, 3)) > 0).astype(int)
    model = MultiOutputClassifier(PostHocCalibratedClassifier(GaussianNB())).fit(X[:600], Y[:600])
    proba = np.column_stack([p[:, 1] for p in model.predict_proba(X[600:])])
    assert multilabel_calibration_error(Y[600:], proba) < 0.15
    with pytest.raises(ValueError, match="take multilabel_calibration_error"):
        expected_calibration_error(Y[600:], proba)


def test_multiple_choice_with_options_that_are_missing():
    rng = np.random.default_rng(0)
    n = rng.integers(2, 6, 600)
    answer, logits = rng.integers(n), rng.normal(size=(600, 5))
    logits[np.arange(600), answer] += 2
    logits = np.where(np.arange(5) < n[:, None], 3 * logits, -np.inf)
    proba = StackedCalibration().fit(logits[:300], answer[:300]).predict_proba(logits[300:])
    assert (proba[np.isinf(logits[300:])] == 0).all()
    assert expected_calibration_error(answer[300:], proba) < 0.1


@pytest.mark.slow
def test_one_page_for_the_boss(cancer, tmp_path):
    report = pytest.importorskip("skcalib.report")
    X, X_test, y, y_test = cancer
    size = {"size": np.where(X_test[:, 0] > 14, "large", "small")}
    page = report.CalibrationReport.from_estimator(GaussianNB().fit(X, y), X_test, y_test, by=size)
    page.save(tmp_path / "boss.html")
    text = (tmp_path / "boss.html").read_text()
    assert "large" in text
    assert "Calibrate it" in text


def test_regression_is_told_that_it_is_not_meant():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 3)), rng.normal(size=100)
    with pytest.raises(ValueError, match=r"^y_true must hold class labels.*regression.*digitize"):
        expected_calibration_error(y, rng.random(100))
    with pytest.raises(ValueError, match=r"^y must hold class labels.*regression.*digitize"):
        LabelIssueFinder().fit(X, y)
    with pytest.raises(ValueError, match=r"'fit' and 'predict_proba'.* Got Ridge"):
        PostHocCalibratedClassifier(Ridge()).fit(X, y)


@pytest.mark.parametrize("at_least", [True, False])
def test_cumulative_probabilities_of_ordered_classes(at_least):
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 50)
    y = (rng.random(50) < np.cumsum(proba, axis=1).T).argmax(axis=0)
    tail = np.cumsum(proba[:, ::-1], axis=1)[:, ::-1]
    cumulative = tail if at_least else np.cumsum(proba, axis=1)
    with pytest.raises(ValueError, match=r"sum to 1, .*\(ordinal\): take the differences"):
        expected_calibration_error(y, cumulative)
    with pytest.raises(ValueError, match=r"4 classes in y_true, .*ordinal model"):
        expected_calibration_error(y, tail[:, 1:])  # P(y > k)
    # What the sentence says to do gives back the probabilities of the classes.
    neighbors = np.hstack(
        [cumulative, np.zeros((50, 1))] if at_least else [0 * y[:, None], cumulative]
    )
    np.testing.assert_allclose(np.abs(np.diff(neighbors, axis=1)), proba, atol=1e-12)


def test_probabilities_of_several_labels_beside_one_label_a_sample():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=r"sum to 1, .*multilabel_calibration_error"):
        expected_calibration_error(rng.integers(4, size=50), rng.random((50, 4)))


@pytest.mark.slow
def test_a_plain_skorch_net_knows_the_probabilities_of_every_loss(digits):
    skorch = pytest.importorskip("skorch")
    import torch

    from skcalib import losses

    torch.set_num_threads(1)
    X, X_test, y, _ = digits
    # Three need more than logits and target.
    others = {"CorrectnessRankingLoss", "DifficultyAwareLoss", "UncertaintyWeightedLoss"}
    names = {name for name in losses.__all__ if name.endswith("Loss")} - others
    assert len(names) == 13
    for kind in (getattr(losses, name) for name in sorted(names)):
        net = skorch.NeuralNetClassifier(
            torch.nn.Linear,
            module__in_features=64,
            module__out_features=10,
            criterion=kind,
            max_epochs=1,
            train_split=None,
            verbose=0,
        ).fit(X.astype("float32"), y)
        logits = net.module_(torch.as_tensor(X_test, dtype=torch.float32)).detach()
        np.testing.assert_allclose(
            net.predict_proba(X_test.astype("float32")), logits.softmax(1), atol=1e-6
        )
        # torch's own parameters are not there where the loss does not use them.
        assert not hasattr(net.criterion_, "label_smoothing")


@pytest.mark.slow
def test_sixty_samples_do_no_harm(cancer):
    X, X_test, y, y_test = cancer
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    low, high = calibration_error_interval(
        y_test[:60], model.predict_proba(X_test[:60]), random_state=0
    )
    assert low == 0
    assert high > 0.05
    small = PostHocCalibratedClassifier(FrozenEstimator(model)).fit(X_test[:60], y_test[:60])
    before, after = (log_loss(y_test[60:], m.predict_proba(X_test[60:])) for m in (model, small))
    assert after < before + 0.02


@pytest.mark.slow
def test_which_calibrator(cancer):
    X, _, y, _ = cancer
    grid = {"calibrator": ["auto", "none"]}
    search = GridSearchCV(
        PostHocCalibratedClassifier(GaussianNB()), grid, scoring="neg_log_loss", cv=3
    ).fit(X, y)
    assert search.best_params_ == {"calibrator": "auto"}


@pytest.mark.slow
def test_a_net_with_a_focal_loss_and_a_search_over_its_gamma(digits):
    pytest.importorskip("skorch")
    import torch

    from skcalib.losses import FocalLoss
    from skcalib.nets import MLP, CalibratedNetClassifier

    torch.set_num_threads(1)
    X, X_test, y, y_test = digits
    net = CalibratedNetClassifier(MLP, criterion=FocalLoss, max_epochs=8, random_state=0)
    grid = {"criterion__gamma": [0, 8]}
    search = GridSearchCV(net, grid, cv=2, scoring="neg_log_loss").fit(X, y)
    assert search.best_params_ == {"criterion__gamma": 0}
    assert search.best_estimator_.score(X_test, y_test) > 0.8


@pytest.mark.slow
def test_a_training_is_stopped_by_what_calibration_cannot_repair(digits):
    pytest.importorskip("skorch")
    import torch
    from skorch.callbacks import EarlyStopping
    from skorch.dataset import ValidSplit

    from skcalib.nets import MLP, CalibratedNetClassifier, CalibrationScoring

    torch.set_num_threads(1)
    X, _, y, _ = digits
    net = CalibratedNetClassifier(
        MLP,
        train_split=ValidSplit(5, stratified=True),
        max_epochs=60,
        lr=0.02,
        callbacks=[
            CalibrationScoring(metric="refined_log_loss"),
            EarlyStopping(monitor="valid_refined_log_loss", patience=3, load_best=True),
        ],
        random_state=0,
    ).fit(X, y)
    found = np.array(net.history[:, "valid_refined_log_loss"])
    assert len(found) < 60
    assert found.argmin() == len(found) - 4
