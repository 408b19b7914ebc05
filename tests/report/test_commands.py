"""The commands monitor and check: what they say, and with which exit status."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.special import expit

from skcalib import metrics
from skcalib.__main__ import main
from skcalib.metrics import CalibrationMonitor

pytest.importorskip("pandas")


def write(path, n=400, slope=1.0, seed=0, labels=("no", "yes"), head="label,p_yes", extra=None):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, n)
    y = (rng.random(n) < expit(z)).astype(int)
    p = expit(slope * z)
    lines = [head] + [
        f"{labels[k]},{value!r}" + ("" if extra is None else f",{extra[i % len(extra)]}")
        for i, (k, value) in enumerate(zip(y, p.tolist()))
    ]
    path.write_text("\n".join(lines) + "\n")
    return y, p


def monitor(tmp_path, capsys, *more, **options):
    write(tmp_path / "today.csv", **options)
    state = tmp_path / "state.json"
    status = main(["monitor", str(tmp_path / "today.csv"), "--state", str(state), *more])
    return status, capsys.readouterr()


def test_monitor_alarms_with_what_went_wrong_since_when(tmp_path, capsys):
    mirror = CalibrationMonitor(labels=["not yes", "yes"])
    for day in range(12):
        slope = 1.0 if day < 6 else 2.0
        status, said = monitor(tmp_path, capsys, "--name", f"day {day}", slope=slope, seed=day)
        y, p = write(tmp_path / "again.csv", slope=slope, seed=day)
        mirror.update(np.array(["not yes", "yes"])[y], p, name=f"day {day}")
        if day < 6:
            assert status == 0
            assert said.out.startswith(f"No alarm: the e-value is {mirror.evidence()[0]:.3g} ")
    assert status == 1
    assert said.out == f"Alarm. {mirror.alarm_}\n"
    assert "is too sure" in said.out
    assert json.loads((tmp_path / "state.json").read_text())["monitor"] == json.loads(
        mirror.to_json()
    )


def test_a_day_may_lack_a_class_and_columns_may_move(tmp_path, capsys):
    state = tmp_path / "state.json"
    text = (
        "label,cat,dog,bird\ncat,.7,.2,.1\ndog,.2,.7,.1\nbird,.1,.1,.8\n",
        "bird,label,dog,cat\n.1,cat,.2,.7\n.1,dog,.7,.2\n",
    )
    for day, lines in enumerate(text):
        (tmp_path / "p.csv").write_text(lines)
        assert main(["monitor", str(tmp_path / "p.csv"), "--state", str(state)]) == 0, day
    kept = CalibrationMonitor.from_json(json.dumps(json.loads(state.read_text())["monitor"]))
    mirror = CalibrationMonitor(labels=["cat", "dog", "bird"])
    mirror.update(["cat", "dog", "bird"], [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]])
    mirror.update(["cat", "dog"], [[0.7, 0.2, 0.1], [0.2, 0.7, 0.1]])
    assert kept.evidence() == mirror.evidence()
    (tmp_path / "p.csv").write_text("label,cat,cow\ncat,.7,.3\ncow,.3,.7\n")
    assert main(["monitor", str(tmp_path / "p.csv"), "--state", str(state)]) == 2
    assert "must have the classes of the steps before, cat, dog, bird, got cat, cow" in (
        capsys.readouterr().err
    )
    # Of two classes, all of a day may be positive.
    state.unlink()
    for lines in ("y,proba\n0,.3\n1,.8\n", "y,proba\n1,.6\n1,.7\n"):
        (tmp_path / "p.csv").write_text(lines)
        assert main(["monitor", str(tmp_path / "p.csv"), "--state", str(state)]) == 0


def test_groups_are_monitored(tmp_path, capsys):
    options = {"head": "label,p_yes,site", "extra": ("A", "B")}
    status, _ = monitor(tmp_path, capsys, "--by", "site", **options)
    state = json.loads((tmp_path / "state.json").read_text())
    assert status == 0
    assert list(state["monitor"]["streams"]) == ["", "site=A", "site=B"]
    status, said = monitor(tmp_path, capsys, seed=1, **options)
    assert status == 2
    assert "by must be passed in every step or in none" in said.err


@pytest.mark.parametrize(
    "fault", ["columns", "same file", "false_alarm_rate", "state", "replace", "Ctrl-C"]
)
def test_a_failed_call_leaves_the_state_as_it_was(tmp_path, capsys, monkeypatch, fault):
    assert monitor(tmp_path, capsys)[0] == 0
    state, options, more = tmp_path / "state.json", {"seed": 1}, []
    if fault == "columns":
        options["head"] = "label,label"
    elif fault == "same file":
        options = {}
    elif fault == "false_alarm_rate":
        more = ["--false-alarm-rate", "0.05"]
    elif fault == "state":
        state.write_text("{}")
    elif fault == "replace":
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full")))
    else:

        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(os, "fsync", interrupt)
    before = state.read_text()
    status, said = monitor(tmp_path, capsys, *more, **options)
    assert status == (130 if fault == "Ctrl-C" else 2)
    assert said.err.startswith("python -m skcalib monitor: ")
    assert said.err.count("\n") == 1
    assert state.read_text() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == ["state.json", "today.csv"]


@pytest.mark.parametrize(
    ("n", "slope", "limit", "result", "status"),
    [
        (4000, 1.0, 0.05, "Passes", 0),
        (4000, 4.0, 0.05, "Fails", 1),
        (60, 1.0, 0.05, "Undecided", 3),
    ],
)
def test_check_decides_by_the_interval(tmp_path, capsys, n, slope, limit, result, status):
    y, p = write(tmp_path / "p.csv", n=n, slope=slope)
    assert main(["check", str(tmp_path / "p.csv"), "--max-error", str(limit)]) == status
    low, high = metrics.calibration_error_interval(y, p, random_state=0)
    said = capsys.readouterr().out
    assert said.startswith(result)
    assert f"is {low:.4f} to {high:.4f} (95 % interval, {n} samples)" in said


def test_check_takes_other_errors_and_refuses_limits(tmp_path, capsys):
    y, p = write(tmp_path / "p.csv", n=500)
    path = str(tmp_path / "p.csv")
    name = "smooth_calibration_error"
    assert main(["check", path, "--max-error", ".5", "--metric", name]) == 0
    error = metrics.smooth_calibration_error
    low, high = metrics.calibration_error_interval(y, p, metric=error, random_state=0)
    assert f"smooth calibration error is {low:.4f} to {high:.4f}" in capsys.readouterr().out
    assert main(["check", path, "--max-error", "5"]) == 2
    assert "max-error must be in (0, 1), got 5" in capsys.readouterr().err
    for metric in ("mce", "neg_debiased_ece", "ks_calibration_error", "brier", "aurc"):
        assert main(["check", path, "--max-error", ".9", "--metric", metric]) == 0
    assert main(["check", path, "--max-error", ".9", "--metric", "accuracy"]) == 2
    assert "metric must be one of ['ece', 'mce'," in capsys.readouterr().err


def test_the_status_reaches_the_shell(tmp_path):
    write(tmp_path / "p.csv", n=3000, slope=4.0)
    command = [sys.executable, "-m", "skcalib", "check", "p.csv", "--max-error", ".01"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout.startswith("Fails: the expected calibration error is ")


@pytest.mark.parametrize("command", ["report", "monitor", "watch", "check"])
def test_the_help_is_text_and_no_format(capsys, command):
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    said = capsys.readouterr().out
    assert stopped.value.code == 0
    assert "--label" in said
    assert "%%" not in said
    assert "%(" not in said


def test_predicted_labels_in_place_of_probabilities_are_told(tmp_path, capsys):
    path = tmp_path / "labels.csv"
    path.write_text("label,prediction\n" + "0,0\n1,1\n" * 150 + "1,0\n" * 3)
    assert main(["check", str(path), "--max-error", ".1"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("Passes: ")
    assert "Note: Column 'prediction' of " in said.err
    assert "write predict_proba in place of predict." in said.err
