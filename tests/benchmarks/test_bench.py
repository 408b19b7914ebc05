"""What ``make bench`` runs still runs: entries with tiny sizes, the papers on made-up texts."""

import json
import sys
from importlib import import_module

import numpy as np
import pytest

from benchmarks import __main__ as bench
from benchmarks.papers.__main__ import main as papers

WORDS = np.array([f"word{i}" for i in range(40)])


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Five intents, each with words of its own, in the format of the real texts."""
    folder, rng = tmp_path_factory.mktemp("texts"), np.random.default_rng(0)
    rows, arrays = {}, {}
    for name, n_each in (("train", 100), ("val", 20), ("test", 20), ("oos_test", 4)):
        y = np.repeat(np.arange(5), n_each)
        drawn = [rng.choice(np.append(WORDS[8 * k : 8 * k + 8], WORDS[::8]), 6) for k in y]
        rows[name] = [[" ".join(words), f"intent {k}"] for words, k in zip(drawn, y)]
        arrays |= {f"y_{name}": y, f"X_{name}": rng.normal(size=(len(y), 5)) + 4 * np.eye(5)[y]}
    (folder / "clinc150.json").write_text(json.dumps(rows))
    np.savez(folder / "clinc150_minilm.npz", **arrays)
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # tiny sizes
@pytest.mark.parametrize("name", bench.SPEED)
def test_scripts_of_speed_run(name, monkeypatch, capsys):
    module = pytest.importorskip(f"benchmarks.{name}")
    monkeypatch.setattr(sys, "argv", [name, "--small"])
    module.main()
    assert "bound" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_small_table_a_paper_is_made(texts, tmp_path, capsys):
    papers([*bench.PAPERS.split()[1:], "--data", str(texts), "--out", str(tmp_path), "--small"])
    out = capsys.readouterr().out
    for name in ("cross-entropy", "difficulty-aware", "in proportion", "depth and correct"):
        (line,) = [line for line in out.splitlines() if line.startswith(name)]
        assert np.isfinite([float(word) for word in line.split() if "." in word]).all()


def test_a_failing_entry_is_named_and_the_others_run(monkeypatch, capsys):
    ran = []

    def run(command, **options):
        ran.append(command[2:])
        return type("Done", (), {"returncode": command[2] == "benchmarks.nets"})

    monkeypatch.setattr(bench.subprocess, "run", run)
    assert bench.main(["--data", "folder"]) == 1
    assert capsys.readouterr().err == "\nfailed: nets\n"
    more = ["--data", "folder"]
    assert ran == [
        ["benchmarks.papers", "glance", *more], *([f"benchmarks.{n}", *more] for n in bench.SPEED)
    ]  # fmt: skip
    for module, *_ in ran:
        import_module(module)
