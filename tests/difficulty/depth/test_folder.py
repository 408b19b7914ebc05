import os
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer
from skcalib.difficulty.depth import _folder, _profiler
from skcalib.utils import SkcalibWarning

# Networks of these tests are trained for a few epochs or not at all.
pytestmark = pytest.mark.filterwarnings("ignore:The depth is undefined")


def small(**options):
    scorer = PredictionDepthScorer(MLPClassifier((6,), max_iter=4), n_neighbors=3)
    return DifficultyProfiler(
        scorer, **{"n_repeats": 4, "test_size": 0.25, "random_state": 0, **options}
    )


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(40, centers=3, cluster_std=3.0, random_state=0)


@pytest.fixture(scope="module")
def expected(blobs):
    return small().fit(*blobs)


@pytest.fixture
def n_runs(monkeypatch):
    """Count the repeats that are run, not read."""
    done, run = [], _profiler.run_repeat
    monkeypatch.setattr(_profiler, "run_repeat", lambda *args: done.append(1) or run(*args))
    return lambda: len(done)


def assert_same(one, other):
    pd.testing.assert_frame_equal(pd.DataFrame(one.profile_), pd.DataFrame(other.profile_))
    np.testing.assert_array_equal(one.predictions_, other.predictions_)
    np.testing.assert_array_equal(one.depth_, other.depth_)
    np.testing.assert_array_equal(one.iteration_learned_, other.iteration_learned_)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_interrupted_study_goes_on_where_it_stopped(blobs, tmp_path, monkeypatch, expected):
    run, done = _profiler.run_repeat, []

    def interrupted(*args):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return run(*args)

    folder = tmp_path / "deep" / "study"
    monkeypatch.setattr(_profiler, "run_repeat", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small(folder=folder).fit(*blobs)
    assert names(folder) == ["repeat-0000.npz", "repeat-0001.npz"]
    (folder / ".repeat-0002-0123abcd.tmp").write_bytes(b"left by a crash")
    done.clear()
    monkeypatch.setattr(_profiler, "run_repeat", lambda *args: done.append(1) or run(*args))
    assert_same(small(folder=str(folder)).fit(*blobs), expected)
    assert len(done) == 2
    longer = small(folder=folder, n_repeats=6).fit(*blobs)
    assert len(done) == 4
    assert_same(longer, small(n_repeats=6).fit(*blobs))
    assert_same(small(folder=folder).fit(*blobs), expected)


def stored(path):
    with np.load(path) as archive:
        return dict(archive)


def damage_values(name, value):
    def damage(path):
        arrays = stored(path)
        arrays[name] = value(arrays[name])
        np.savez_compressed(path, **arrays)

    return damage


def drop_member(path):
    arrays = stored(path)
    arrays.pop("depth")
    np.savez_compressed(path, **arrays)


def plain_array(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


DAMAGES = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[:200]),
    "empty": lambda path: path.write_bytes(b""),
    "text": lambda path: path.write_text("no archive"),
    "zip of something else": lambda path: zipfile.ZipFile(path, "w").close(),
    "one plain array": plain_array,
    "pickle": lambda path: path.write_bytes(pickle.dumps({"depth": 1})),
    "bit flipped": flip_a_bit,
    "missing array": drop_member,
    "fewer samples": damage_values("depth", lambda depth: depth[:-1]),
    "another type": damage_values("depth", lambda depth: depth.astype(np.float32)),
    "a depth of 99": damage_values("depth", lambda depth: np.where(depth == 0, 99, depth)),
    "objects": damage_values("predictions", lambda labels: labels.astype(object)),
    "another key": damage_values("key", lambda key: np.array("0" * len(str(key)))),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_is_named_and_its_repeat_runs_again(
    blobs, tmp_path, damage, expected, n_runs
):
    small(folder=tmp_path).fit(*blobs)
    damage(tmp_path / "repeat-0002.npz")
    message = r"repeat-0002\.npz is damaged; the repeat runs again\.$"
    with pytest.warns(SkcalibWarning, match=message) as caught:
        resumed = small(folder=tmp_path).fit(*blobs)
    assert len(caught) == 1
    assert n_runs() == 5
    assert_same(resumed, expected)
    assert_same(small(folder=tmp_path).fit(*blobs), expected)  # Whole again, no warning.
    assert n_runs() == 5


def test_a_failed_write_leaves_nothing_behind(blobs, tmp_path, monkeypatch):
    def full(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr(_folder.np, "savez_compressed", full)
    with pytest.raises(OSError, match="No space left"):
        small(folder=tmp_path).fit(*blobs)
    assert names(tmp_path) == []


def test_a_file_is_on_the_disk_before_it_gets_its_name(blobs, tmp_path, monkeypatch):
    events = []
    sync, replace = os.fsync, _folder.Path.replace
    monkeypatch.setattr(_folder.os, "fsync", lambda file: (events.append("sync"), sync(file)))
    monkeypatch.setattr(
        _folder.Path,
        "replace",
        lambda path, to: (events.append("rename"), replace(path, to)),
    )
    small(folder=tmp_path).fit(*blobs)
    assert events == ["sync", "rename"] * 4


def test_unfinished_files_have_names_that_cannot_be_foreseen(blobs, tmp_path, monkeypatch):
    seen = []
    replace = _folder.Path.replace
    monkeypatch.setattr(
        _folder.Path,
        "replace",
        lambda path, to: (seen.append(path), replace(path, to)),
    )
    small(folder=tmp_path / "one").fit(*blobs)
    small(folder=tmp_path / "two").fit(*blobs)
    assert len({path.name for path in seen}) == 8
    assert str(os.getpid()) not in {path.name.split("-")[2] for path in seen}


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symbolic links here")
def test_nothing_is_written_through_a_symbolic_link(blobs, tmp_path, monkeypatch, expected):
    folder, victim = tmp_path / "study", tmp_path / "victim"
    folder.mkdir()
    victim.write_text("mine")
    (folder / "repeat-0001.npz").symlink_to(victim)
    with pytest.warns(SkcalibWarning, match=r"repeat-0001\.npz is damaged"):
        assert_same(small(folder=folder).fit(*blobs), expected)
    assert victim.read_text() == "mine"
    assert not (folder / "repeat-0001.npz").is_symlink()
    # Even where the name of an unfinished file is known, a link of that name is not followed.
    monkeypatch.setattr(_folder, "uuid4", lambda: type("Known", (), {"hex": "known"}))
    (folder / "repeat-0000.npz").unlink()
    (folder / ".repeat-0000-known.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError):
        small(folder=folder).fit(*blobs)
    assert victim.read_text() == "mine"


@pytest.mark.parametrize(
    "change", ["data", "labels", "estimator", "random_state", "test_size", "weights"]
)
def test_folder_of_another_study(blobs, tmp_path, change):
    X, y = blobs
    profiler, weight = small(folder=tmp_path).fit(X, y), None
    if change == "data":
        X = X + 1
    elif change == "labels":
        y = np.where(np.arange(40) == 3, (y + 1) % 3, y)
    elif change == "estimator":
        profiler.set_params(estimator__n_neighbors=4)
    elif change == "weights":
        weight = np.ones(len(y))
    else:
        profiler.set_params(**{"random_state": 1} if change == "random_state" else {change: 0.3})
    with pytest.raises(ValueError, match=r"folder must hold this study alone, got .*repeat-0000"):
        profiler.fit(X, y, weight)


def strided(array):
    return np.repeat(array, 2, axis=0)[::2]


@pytest.mark.parametrize(
    "relay",
    [
        lambda X, y: (np.asfortranarray(X), y),
        lambda X, y: (strided(X), strided(y)),
        lambda X, y: (X, y.astype(np.int32)),
        lambda X, y: (X, y.astype(np.uint8)),
        lambda X, y: (X, y.astype(float)),
        lambda X, y: (X.tolist(), y.tolist()),
    ],
)
def test_equal_values_are_the_same_study(blobs, tmp_path, relay, expected, n_runs):
    small(folder=tmp_path).fit(*blobs)
    relaid = small(folder=tmp_path, test_size=10).fit(*relay(*blobs))
    assert n_runs() == 4
    assert_same(relaid, expected)


def test_frames_of_equal_values_are_the_same_study(blobs, tmp_path, n_runs):
    X, y = blobs
    X = np.rint(X).astype(int)
    labels = np.array(["a", "b", "c"])[y]
    net = make_pipeline(StandardScaler(), MLPClassifier((4,), max_iter=3))
    scorer = PredictionDepthScorer(net, n_neighbors=3)
    profiler = small(folder=tmp_path).set_params(estimator=scorer)
    frame = pd.DataFrame(X, columns=["x", "y"])
    profiler.fit(frame, labels)
    by_column = pd.DataFrame({"x": X[:, 0].astype(np.int32), "y": X[:, 1]}, index=range(7, 47))
    profiler.fit(by_column, labels.astype(object))
    assert n_runs() == 4
    with pytest.raises(ValueError, match="folder must hold this study alone"):
        profiler.fit(frame.rename(columns={"x": "z"}), labels)


def test_folder_needs_splits_that_come_again(blobs, tmp_path):
    message = "random_state must be an integer where a folder is given, .*, got None"
    with pytest.raises(ValueError, match=message):
        small(folder=tmp_path / "study", random_state=None).fit(*blobs)
    assert not (tmp_path / "study").exists()
