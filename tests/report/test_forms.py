"""Files as other tools write them: read as they were meant, or refused with the cause."""

import gzip
import json
import sys

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit, softmax

from skcalib.__main__ import main
from skcalib.report import CalibrationReport
from skcalib.report._read import read_predictions
from skcalib.utils import SkcalibWarning

RNG = np.random.default_rng(0)
N = 200
P = np.round(RNG.beta(2, 2, N), 4)
Y = (RNG.random(N) < P).astype(int)
BOTH = np.column_stack([1 - P, P])
NAMES = np.array(["neg", "pos"])


def check(path, classes=("0", "1"), expected=BOTH, labels=None, **options):
    """The probabilities of every class and the labels are those that were written."""
    found = read_predictions(path, **options)
    labels = np.array(classes)[Y] if labels is None else labels
    np.testing.assert_array_equal(found["y_true"], labels)
    if found["y_proba"].ndim == 1:
        k = list(classes).index(found["pos_label"])
        np.testing.assert_allclose(found["y_proba"], expected[:, k], atol=1e-9)
    else:
        columns = [found["labels"].index(name) for name in classes]
        np.testing.assert_allclose(found["y_proba"][:, columns], expected, atol=1e-9)
    return found


LISTS = {
    "Python": lambda row: str(row.tolist()),
    "numpy": lambda row: str(row),
    "torch": lambda row: f"tensor({row.tolist()})",
    "Spark": lambda row: f"DenseVector({row.tolist()})",
    "Spark as JSON": lambda row: json.dumps(
        {"vectorType": "dense", "length": 2, "values": row.tolist()}
    ),
}


@pytest.mark.parametrize("form", LISTS)
def test_a_list_in_one_cell(form, tmp_path):
    path = tmp_path / "p.csv"
    cells = [LISTS[form](row) for row in BOTH]
    pd.DataFrame({"label": Y, "probability": cells, "prediction": 1.0}).to_csv(path, index=False)
    check(path)
    pd.DataFrame({"label": NAMES[Y], "probability": cells}).to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"of the lists .*--classes probability\[0\]=CLASS"):
        read_predictions(path)
    named = {"probability[0]": "neg", "probability[1]": "pos"}
    found = read_predictions(path, classes=named)
    np.testing.assert_allclose(found["y_proba"], BOTH)


@pytest.mark.parametrize("write", [str, json.dumps])
def test_scores_of_hugging_face_have_names(write, tmp_path):
    path = tmp_path / "p.csv"
    cells = []
    for row in BOTH:
        order = np.argsort(-row)  # the likeliest first, as a pipeline writes them
        cells.append(write([{"label": NAMES[k].item(), "score": row[k].item()} for k in order]))
    pd.DataFrame({"label": NAMES[Y], "scores": cells}).to_csv(path, index=False)
    check(path, NAMES)


@pytest.mark.parametrize("form", ["records", "lines", "columns", "lists"])
def test_json(form, tmp_path):
    path = tmp_path / "p.json"
    frame = pd.DataFrame({"label": Y, "prob_0": BOTH[:, 0], "prob_1": BOTH[:, 1]})
    if form == "lists":
        frame = pd.DataFrame({"label": Y, "probs": BOTH.tolist()})
    orient = "list" if form == "columns" else "records"
    records = frame.to_dict(orient)
    text = json.dumps(records)
    if form == "lines":
        text = "\n".join(json.dumps(record) for record in records)
    path.write_text(text)
    assert check(path)["source"]["encoding"] == "JSON"


@pytest.mark.parametrize("text", ["[" * 10_000, '{"label": 1', '{"label": 1}\n[2]'])
def test_what_is_no_json_is_refused(text, tmp_path):
    path = tmp_path / "p.json"
    path.write_text("{" + text if text.startswith("[") else text)
    with pytest.raises(ValueError, match=r"must be JSON|must have"):
        read_predictions(path)


@pytest.mark.parametrize("name", ["probs", "logits"])
@pytest.mark.parametrize("one_hot", [False, True])
def test_arrays_of_numpy(name, one_hot, tmp_path):
    path = tmp_path / "p.npz"
    values = np.log(BOTH + 1e-6) + 3 if name == "logits" else BOTH
    np.savez(path, **{name: values, "labels": np.eye(2)[Y] if one_hot else Y})
    found = check(path, expected=softmax(values, axis=1) if name == "logits" else BOTH)
    assert ("softmax" in found["source"]["columns of probabilities"]) == (name == "logits")
    np.savez(path, probs=BOTH, labels=Y[:-1])
    with pytest.raises(ValueError, match="must hold arrays with one row for each sample"):
        read_predictions(path)


def test_feather(tmp_path):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"label": Y, "prob_1": P, "prob_0": 1 - P}).to_feather(tmp_path / "p.feather")
    check(tmp_path / "p.feather")
    (tmp_path / "p.feather").write_bytes(b"ARROW1\0\0")
    with pytest.raises(ValueError, match="must be a whole feather file, got: "):
        read_predictions(tmp_path / "p.feather")


def test_a_pickle_is_refused(tmp_path):
    pd.DataFrame({"label": Y, "prob_1": P}).to_pickle(tmp_path / "p.pkl")
    with pytest.raises(ValueError, match="got a pickle, which could run code: write it as CSV"):
        read_predictions(tmp_path / "p.pkl")


def test_one_hot_labels(tmp_path):
    path = tmp_path / "p.csv"
    y, proba = RNG.integers(0, 3, N), RNG.dirichlet([1, 1, 1], N)
    frame = pd.DataFrame({"id": np.arange(N)})
    for k, name in enumerate("abc"):
        frame[name], frame[f"pred_{name}"] = (y == k).astype(int), proba[:, k]
    frame.to_csv(path, index=False)
    found = check(path, ("a", "b", "c"), proba, np.array(["a", "b", "c"])[y])
    assert found["source"]["column of labels"] == "a, b, c"
    frame.assign(a=1).to_csv(path, index=False)
    with pytest.raises(ValueError, match="got several or none in columns a, b, c"):
        read_predictions(path)


def test_distribution_of_weka(tmp_path):
    path = tmp_path / "p.csv"
    lines = ["inst#,actual,predicted,error,distribution"]
    for i, (y, (a, b)) in enumerate(zip(Y, BOTH.round(4))):
        pair = f"*{a:.4f},{b:.4f}" if a > b else f"{a:.4f},*{b:.4f}"
        lines.append(f"{i + 1},{y + 1}:{NAMES[y]},{(b > a) + 1}:{NAMES[int(b > a)]},,{pair}")
    path.write_text("\n".join(lines) + "\n")
    check(path, NAMES)


@pytest.mark.parametrize("more", [",", ",,"])
def test_separators_at_the_end_of_rows(more, tmp_path):
    path = tmp_path / "p.csv"
    rows = [f"{y},{p}{more}" for y, p in zip(Y, P)]
    path.write_text("\n".join(["label,prob_1", *rows]) + "\n")
    check(path)
    path.write_text("\n".join([f"label,prob_1{more}", *rows]) + "\n")
    check(path)


def test_percent_signs(tmp_path):
    path = tmp_path / "p.csv"
    cells = [f"{100 * p:.2f} %" for p in P]
    pd.DataFrame({"label": Y, "prob": cells}).to_csv(path, index=False)
    found = check(path)
    assert found["source"]["columns of probabilities"] == (
        "prob (of 1), percent signs divided by 100"
    )
    pd.DataFrame({"label": Y, "prob": 100 * P}).to_csv(path, index=False)
    with pytest.raises(
        ValueError, match=r"in line 2; --percent \(percent=True\) divides percentages by 100\.$"
    ):
        read_predictions(path)


def test_logits_by_name(tmp_path):
    path = tmp_path / "p.csv"
    z = np.round(logit(P), 6)
    pd.DataFrame({"label": Y, "logit": z}).to_csv(path, index=False)
    check(path, expected=np.column_stack([expit(-z), expit(z)]))
    pd.DataFrame({"label": Y, "logit_0": 1.0, "logit_1": z}).to_csv(path, index=False)
    check(path, expected=softmax(np.column_stack([np.ones(N), z]), axis=1))
    # Log-odds of both classes are no logits of a softmax, whose odds are their difference.
    pd.DataFrame({"label": Y, "logit_0": -z, "logit_1": z}).to_csv(path, index=False)
    with pytest.raises(ValueError, match="got one that is minus the other, as log-odds are"):
        read_predictions(path)


Q = np.round(RNG.uniform(0.1, 0.9, N), 4)
S = RNG.integers(0, 2, N)
DUMMIES = {
    "dummies": {"p_1": P, "sex_0": 1 - S, "sex_1": S},
    "dummies beside proba": {"proba": P, "sex_0": 1 - S, "sex_1": S},
    "shares": {"p_1": P, "share_0": Q, "share_1": 1 - Q},
    "shares beside proba": {"proba": P, "share_0": Q, "share_1": 1 - Q},
    "features": {"p_1": P, **{f"x{k}": RNG.normal(size=N) for k in range(30)}},
    "predicted classes": {"p_1": P, "pred_0": 1 - S, "pred_1": S},
    "features of the form": {"p_1": P, "prob_0": 7 * Q, "prob_1": 9 * Q},
    "the largest": {"prob_0": 1 - P, "prob_1": P, "p": np.maximum(P, 1 - P)},
    "the same twice": {"prob_0": 1 - P, "prob_1": P, "proba": P},
    "two of one name": {"p_1": P, "decile": 3, "decile (2)": Q},
}


@pytest.mark.parametrize("case", DUMMIES)
def test_unused_columns_never_decide(case, tmp_path):
    path = tmp_path / "p.csv"
    frame = pd.DataFrame({"label": Y, **DUMMIES[case]})
    for order in (list(frame), list(frame)[::-1]):
        frame[order].rename(columns={"decile (2)": "decile"}).to_csv(path, index=False)
        check(path)


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"p_1": P, "proba_1": Q}, "p_1; proba_1|proba_1; p_1"),
        ({"p_1": P, "proba": Q}, "p_1; proba"),
        ({"prob_0": 1 - P, "prob_1": P, "p_0": Q, "p_1": 1 - Q}, "p_0, p_1; prob_0, prob_1"),
        ({"prob_0": 1 - P, "prob_1": P, "proba": Q}, "prob_0, prob_1; proba"),
        ({"oof_lgb": P, "oof_xgb": Q}, r"probabilities: oof_lgb, oof_xgb; --classes oof_lgb="),
    ],
)
def test_two_candidates_are_refused_with_both_named(columns, named, tmp_path):
    path = tmp_path / "p.csv"
    pd.DataFrame({"label": Y, **columns}).to_csv(path, index=False)
    with pytest.raises(ValueError, match=named):
        read_predictions(path)


def test_two_columns_of_labels(tmp_path):
    path = tmp_path / "p.csv"
    predicted = (P > 0.5).astype(int)
    frame = pd.DataFrame({"gold": Y, "label": predicted, "prob_0": 1 - P, "prob_1": P})
    frame.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"where .* has several, got label, gold: --label"):
        read_predictions(path)
    check(path, label="gold")
    # The same labels by other names, or a column that holds none.
    frame.assign(label=NAMES[Y]).to_csv(path, index=False)
    check(path)
    frame.assign(label=Q, gold=Y).to_csv(path, index=False)
    check(path)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "check", "watch"])
def test_every_command_reports_labels_that_are_predictions(command, tmp_path, capsys):
    path = tmp_path / "p.csv"
    pd.DataFrame({"label": NAMES[(P > 0.5) * 1], "neg": 1 - P, "pos": P}).to_csv(path, index=False)
    more = {
        "report": ["-o", str(tmp_path / "r.md")],
        "check": ["--max-error", ".5"],
        "watch": ["--state", str(tmp_path / "state.json")],
    }
    # Probabilities of these labels are too small.
    assert main([command, str(path), *more[command]]) == (command == "watch")
    expected = np.minimum(P, 1 - P).sum()
    output = capsys.readouterr()
    assert (
        f"Note: The labels are the most probable class in all {N} rows, where the probabilities "
        f"expect {expected:.0f} errors: they are predictions and no true labels, unless the model "
        "is never wrong; --label names another column.\n"
    ) in output.err
    if command == "report":
        assert output.out.startswith("The labels are predictions and no true labels, or the model")


def test_columns_of_groups_and_of_models_are_named(tmp_path):
    path = tmp_path / "p.csv"
    frame = pd.DataFrame({"label": Y, "p_1": P, "patient_id": np.arange(N) // 4})
    frame.to_csv(path, index=False)
    with pytest.warns(
        SkcalibWarning, match=r"'patient_id' .* 50 in 200 rows: .* --groups patient"
    ):
        read_predictions(path)
    check(path, groups="patient_id")
    pd.DataFrame({"label": Y, "p_1": P, "model_name": NAMES[S]}).to_csv(path, index=False)
    with pytest.warns(SkcalibWarning, match="'model_name' of .* has 2 values"):
        read_predictions(path)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "check", "monitor"])
def test_every_command_prints_columns_and_classes(command, tmp_path, capsys):
    path = tmp_path / "p.csv"
    pd.DataFrame({"truth": NAMES[Y], "p_neg": 1 - P, "p_pos": P, "id": 1}).to_csv(
        path, index=False
    )
    more = {
        "report": ["-o", str(tmp_path / "r.md")],
        "check": ["--max-error", ".5"],
        "monitor": ["--state", str(tmp_path / "state.json")],
    }
    assert main([command, str(path), *more[command]]) == 0
    assert capsys.readouterr().err.startswith(
        "Read 200 rows as utf-8; labels: truth; probabilities: p_neg (of neg), p_pos (of pos); "
        "classes: neg, pos\nColumns that were not used: id\n"
    )


OUTCOMES = {
    "0 and 1": Y,
    "True": Y == 1,
    "yes": np.where(Y, "yes", "no"),
    "Correct": np.where(Y, "Correct", "Incorrect"),
}
WORDS = ("wrong", "right")


@pytest.mark.parametrize("kind", OUTCOMES)
def test_the_confidence_in_an_answer_that_is_right_or_wrong(kind, tmp_path):
    path = tmp_path / "p.csv"
    frame = pd.DataFrame({"question": range(N), "is_correct": OUTCOMES[kind], "confidence": P})
    frame.to_csv(path, index=False)
    assert check(path, WORDS)["of_answers"]
    frame.rename(columns={"is_correct": "ok", "confidence": "c"}).to_csv(path, index=False)
    found = check(path, WORDS, label="ok", confidence="c")
    assert found["source"]["columns of confidence"] == "c (of right)"


@pytest.mark.parametrize("classes", [2, 5])
def test_an_answer_with_its_confidence(classes, tmp_path):
    path = tmp_path / "p.csv"
    truth = RNG.integers(classes, size=N)
    answers = np.where(Y == 1, truth, (truth + 1) % classes)
    frame = pd.DataFrame({"gold": truth, "pred": answers, "confidence": P, "prob_1": 1 - P})
    frame.to_csv(path, index=False)
    found = check(path, WORDS, prediction="pred", confidence="confidence")
    assert found["source"]["column of answers"] == "pred"
    assert found["source"]["columns not used"] == "prob_1"
    check(path, WORDS, prediction="pred")
    frame = frame.drop(columns="prob_1")
    frame.to_csv(path, index=False)
    if classes > 2:
        check(path, WORDS)
        return
    with pytest.raises(ValueError, match=r"--prediction pred --confidence confidence; "):
        read_predictions(path)
    high = (1 + P) / 2
    frame.assign(confidence=high).to_csv(path, index=False)
    check(path, WORDS, np.column_stack([1 - high, high]))


def test_an_alarm_about_answers_speaks_of_answers(tmp_path, capsys):
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.6, 1, 600)
    right = rng.random(600) < confidence - 0.25
    table = pd.DataFrame({"correct": right.astype(int), "confidence": confidence})
    table.to_csv(tmp_path / "p.csv", index=False)
    assert main(["monitor", str(tmp_path / "p.csv"), "--state", str(tmp_path / "s.json")]) == 1
    said = capsys.readouterr().out
    mean, fraction = f"{confidence.mean():.1%}", f"{right.mean():.1%}"
    assert f"confidence in the answers is {mean} on average, and {fraction} are right." in said
    assert "class" not in said


def test_the_confidence_in_a_prediction_is_offered(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    table = pd.DataFrame({"actual": np.where(rng.random(200) < p, "pos", "neg")})
    table["answer_of_model"] = np.where(p > 0.5, "pos", "neg")
    table["score"] = np.maximum(p, 1 - p)
    table.to_csv(tmp_path / "p.csv", index=False)
    with pytest.raises(ValueError, match=r"--prediction answer_of_model --confidence score"):
        read_predictions(tmp_path / "p.csv")


def test_answers_that_cannot_be_read_name_the_cause(tmp_path):
    path = tmp_path / "p.csv"
    frame = pd.DataFrame({"gold": NAMES[Y], "pred": NAMES[Y], "confidence": 100 * P})
    faults = {
        r"'confidence' .* --percent \(percent=True\) divides percentages by 100": {
            "prediction": "pred"
        },
        r"prediction must name .* got the labels neg, pos": {"confidence": "confidence"},
        r"classes and pos_label must be None": {"confidence": "confidence", "pos_label": "pos"},
        r"must have a column 'conf'": {"confidence": "conf"},
    }
    for match, options in faults.items():
        frame.to_csv(path, index=False)
        with pytest.raises(ValueError, match=match):
            read_predictions(path, **options)
    frame.assign(pred="B").to_csv(path, index=False)
    with pytest.raises(ValueError, match="must name the same classes, got 'B' beside"):
        read_predictions(path, prediction="pred")
    frame.drop(columns="confidence").to_csv(path, index=False)
    with pytest.raises(ValueError, match="confidence must name the column"):
        read_predictions(path, prediction="pred")


@pytest.mark.slow
def test_every_command_takes_answers(tmp_path, capsys):
    path, state = tmp_path / "p.csv", tmp_path / "state.json"
    truth = RNG.integers(4, size=N)
    answers = np.where(Y == 1, truth, 9)
    pd.DataFrame({"y": truth, "said": answers, "sure": P}).to_csv(path, index=False)
    options = [str(path), "--prediction", "said", "--confidence", "sure"]
    assert main(["check", *options, "--max-error", "0.3"]) == 0
    assert main(["monitor", *options, "--state", str(state)]) == 0
    assert main(["report", *options, "-o", str(tmp_path / "p.md")]) == 0
    assert capsys.readouterr().err.count("answers: said; confidence: sure (of right)") == 3
    page = (tmp_path / "p.md").read_text()
    assert "200 answers" in page
    assert "Which classes?" not in page


@pytest.mark.slow
def test_a_page_of_answers_never_takes_a_low_confidence_for_wrong(tmp_path):
    confidence = np.clip(P, 0.01, 0.99)
    found = CalibrationReport.from_predictions(Y == 1, confidence, of_answers=True).results_
    assert found["overview"]["accuracy"]["value"] == pytest.approx(Y.mean())
    assert found["overview"]["mean_confidence"] == pytest.approx(confidence.mean())
    assert found["selective"]["error_rate"] == pytest.approx(1 - Y.mean())
    order = np.argsort(-confidence, kind="stable")
    curve = found["selective"]["curve"]
    half = np.interp(0.5, curve["coverage"], curve["risk"])
    assert half == pytest.approx(1 - Y[order[: N // 2]].mean(), abs=0.02)
    assert {row["accuracy"] for row in found["calibrators"]["table"]} == {Y.mean()}
    with pytest.raises(ValueError, match="y_proba must have shape"):
        CalibrationReport.from_predictions(Y == 1, BOTH, of_answers=True)


def calls_of(function, *args):
    """Return how many functions are called, of Python and of C."""
    count = 0

    def counting(frame, event, arg):
        nonlocal count
        count += event in ("call", "c_call")

    former = sys.getprofile()
    sys.setprofile(counting)
    try:
        function(*args)
    finally:
        sys.setprofile(former)
    return count


@pytest.mark.slow
def test_cost_is_linear_in_unused_columns(tmp_path):
    path = tmp_path / "p.csv"
    calls = []
    for n_columns in (500, 4000):
        unused = {f"c{k}": np.full(N, 0.3) for k in range(n_columns)}
        pd.DataFrame({"label": Y, "prob_1": P, **unused}).to_csv(path, index=False)
        calls.append(calls_of(check, path))
    assert calls[1] < 12 * calls[0]  # 8 if linear, 64 if quadratic


@pytest.mark.slow
def test_bombs_are_refused_and_blank_lines_cost_nothing(tmp_path):
    path = tmp_path / "p.csv.gz"
    path.write_bytes(gzip.compress(b"label,prob_1\n" + b"0" * 10_000_000))
    with pytest.raises(ValueError, match="got more than 200 times its size unpacked"):
        read_predictions(path)
    path.write_bytes(b"\n" * 1_000_000 + pd.DataFrame({"label": Y, "p_1": P}).to_csv().encode())
    assert calls_of(check, path) < 100_000  # a million if every line cost one
