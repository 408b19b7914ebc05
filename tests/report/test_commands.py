"""The commands monitor and check: what they say, and with which exit status."""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import expit

from skcalib import __main__ as commands
from skcalib import metrics
from skcalib.__main__ import main
from skcalib.metrics import CalibrationMonitor

pd = pytest.importorskip("pandas")


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


@pytest.mark.slow
def test_monitor_alarms_with_what_went_wrong_since_when(tmp_path, capsys):
    mirror = CalibrationMonitor(labels=["not yes", "yes"])
    for day in range(12):
        slope = 1.0 if day < 6 else 2.0
        status, said = monitor(tmp_path, capsys, "--name", f"day {day}", slope=slope, seed=day)
        y, _ = write(tmp_path / "again.csv", slope=slope, seed=day)
        p = pd.read_csv(tmp_path / "again.csv")["p_yes"]  # pandas may read another last digit
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


@pytest.mark.parametrize("fault", ["columns", "false_alarm_rate", "state", "replace", "Ctrl-C"])
def test_a_failed_call_leaves_the_state_as_it_was(tmp_path, capsys, monkeypatch, fault):
    assert monitor(tmp_path, capsys)[0] == 0
    state, options, more = tmp_path / "state.json", {"seed": 1}, []
    if fault == "columns":
        options["head"] = "label,label"
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


@pytest.mark.slow
def test_a_file_that_is_given_twice_returns_what_it_returned(tmp_path, capsys):
    first = monitor(tmp_path, capsys, "--name", "Monday")
    for day in range(1, 8):
        status, said = monitor(tmp_path, capsys, "--name", f"day {day}", slope=3.0, seed=day)
    assert status == 1
    before = (tmp_path / "state.json").read_text()
    for again, (was, output), name in (
        (monitor(tmp_path, capsys, slope=3.0, seed=7), (1, said.out), "day 7"),
        (monitor(tmp_path, capsys), (0, first[1].out), "Monday"),
    ):
        assert (again[0], again[1].out) == (was, output)
        assert f"was added before, as {name}: nothing is added" in again[1].err
    assert (tmp_path / "state.json").read_text() == before


@pytest.mark.slow
@pytest.mark.parametrize("slope", [1.0, 6.0])
def test_output_that_fails_keeps_the_status(tmp_path, capsys, monkeypatch, slope):
    def fail(_):
        raise BrokenPipeError(32, "Broken pipe")

    options = {"slope": slope, "n": 3000}
    with monkeypatch.context() as patched:
        patched.setattr(sys.stdout, "write", fail)
        status, said = monitor(tmp_path, capsys, **options)
    assert status == int(slope > 1)
    assert said.err.endswith("Note: the result could not be written: Broken pipe.\n")
    status, said = monitor(tmp_path, capsys, **options)
    assert status == int(slope > 1)
    assert said.out.startswith("Alarm. " if slope > 1 else "No alarm: ")
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", None)
        patched.setattr(sys, "stderr", None)
        assert main(["check", str(tmp_path / "today.csv"), "--max-error", ".9"]) == 0


@pytest.mark.slow
def test_commands_that_share_a_state_lose_nothing(tmp_path, monkeypatch):
    read = commands._read_step

    def read_slowly(*arguments):
        time.sleep(0.02)  # long enough for the others to read the same state
        return read(*arguments)

    monkeypatch.setattr(commands, "_read_step", read_slowly)
    state = tmp_path / "state.json"
    for k in range(6):
        write(tmp_path / f"{k}.csv", seed=k)
    with ThreadPoolExecutor(6) as pool:
        run = [
            pool.submit(main, ["monitor", str(tmp_path / f"{k}.csv"), "--state", str(state)])
            for k in range(6)
        ]
    assert [done.result() for done in run] == [0] * 6
    kept = json.loads(state.read_text())
    assert len(kept["files"]) == len(kept["monitor"]["streams"][""]["steps"]) == 6


@pytest.mark.skipif(os.name == "nt", reason="symbolic links and modes of POSIX")
def test_the_state_keeps_its_link_and_mode(tmp_path, capsys):
    (tmp_path / "kept").mkdir()
    state, target = tmp_path / "state.json", tmp_path / "kept" / "real.json"
    state.symlink_to(target)
    assert monitor(tmp_path, capsys)[0] == 0
    for mode in (0o600, 0o664):
        target.chmod(mode)
        owner = target.stat().st_uid, target.stat().st_gid
        assert monitor(tmp_path, capsys, seed=mode)[0] == 0
        assert state.is_symlink()
        assert target.stat().st_mode & 0o777 == mode
        assert (target.stat().st_uid, target.stat().st_gid) == owner
    assert len(json.loads(state.read_text())["files"]) == 3
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["real.json"]


class Killed(BaseException):
    """The process is dead: from now on, no call reaches the system."""


@pytest.mark.slow
def test_a_kill_at_any_call_leaves_the_old_state_or_the_new_one(tmp_path, capsys, monkeypatch):
    assert monitor(tmp_path, capsys)[0] == 0
    state = tmp_path / "state.json"
    before = state.read_text()
    seen = set()
    for at in itertools.count():
        calls = itertools.count()

        def die_at(call, at=at, calls=calls):
            def dying(*arguments, **options):
                if next(calls) >= at:
                    raise Killed
                return call(*arguments, **options)

            return dying

        state.write_text(before)
        with monkeypatch.context() as patched:
            for module, name in (
                *((os, name) for name in ("open", "fsync", "replace", "unlink")),
                *((pathlib.Path, name) for name in ("open", "replace", "unlink")),
            ):
                patched.setattr(module, name, die_at(getattr(module, name)))
            try:
                monitor(tmp_path, capsys, seed=1)
            except Killed:
                done = False
            else:
                done = True
        after = state.read_text()
        seen.add(after == before)
        assert len(json.loads(after)["files"]) == (1 if after == before else 2)
        if done:
            break
        # What a dead process has left is in nobody's way.
        assert monitor(tmp_path, capsys, seed=1)[0] == 0
        assert len(json.loads(state.read_text())["files"]) == 2
    assert seen == {True, False}
    assert at > 5


@pytest.mark.slow
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


@pytest.mark.slow
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
    refusal = capsys.readouterr().err
    assert "metric must be one of [" in refusal
    assert "'ece'" in refusal
    assert refusal.endswith("got 'accuracy'.\n")


@pytest.mark.slow
def test_the_status_reaches_the_shell(tmp_path):
    write(tmp_path / "p.csv", n=3000, slope=4.0)
    command = [sys.executable, "-m", "skcalib", "check", "p.csv", "--max-error", ".01"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stdout.startswith("Fails: the expected calibration error is ")


@pytest.mark.parametrize("command", ["report", "compare", "monitor", "watch", "check"])
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
