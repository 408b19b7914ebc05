import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_blobs
from sklearn.neural_network import MLPClassifier

from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer, _profiler

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
def trained(monkeypatch):
    """Collect the seeds of the networks that are trained, not read."""
    seeds, train = [], _profiler.train_recorded

    def record(*args, seed, **options):
        seeds.append(seed)
        return train(*args, seed=seed, **options)

    monkeypatch.setattr(_profiler, "train_recorded", record)
    return seeds


def assert_same(one, other):
    pd.testing.assert_frame_equal(pd.DataFrame(one.profile_), pd.DataFrame(other.profile_))
    for name in ("predictions_", "depth_", "iteration_learned_", "probe_votes_", "held_out_"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.slow
def test_an_interrupted_study_goes_on_where_it_stopped(
    blobs, tmp_path, monkeypatch, expected, trained
):
    train = _profiler.train_recorded

    def interrupted(*args, **options):
        if len(trained) == 2:
            raise KeyboardInterrupt
        return train(*args, **options)

    folder = tmp_path / "deep" / "study"
    monkeypatch.setattr(_profiler, "train_recorded", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small(folder=folder).fit(*blobs)
    assert len(trained) == 2
    monkeypatch.setattr(_profiler, "train_recorded", train)
    assert_same(small(folder=str(folder)).fit(*blobs), expected)
    assert len(trained) == len(set(trained)) == 4
    longer = small(folder=folder, n_repeats=6).fit(*blobs)
    assert len(trained) == 6
    assert_same(longer, small(n_repeats=6).fit(*blobs))


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:200]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("no pickle"),
        flip_a_bit,
    ],
    ids=["truncated", "empty", "text", "bit flipped"],
)
def test_a_damaged_repeat_runs_again(blobs, tmp_path, damage, expected, trained):
    small(folder=tmp_path).fit(*blobs)
    damage(sorted(tmp_path.rglob("output.pkl"))[2])
    for _ in range(2):  # whole again at the second time
        assert_same(small(folder=tmp_path).fit(*blobs), expected)
        assert len(trained) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", ["data", "labels", "estimator", "random_state", "test_size", "weights"]
)
def test_another_study_in_the_same_folder_is_run(blobs, tmp_path, change, trained):
    X, y = blobs
    profiler, weight = small(folder=tmp_path).fit(X, y), None
    if change == "data":
        X = X + 1
    elif change == "labels":
        y = np.where(np.arange(40) == 3, (y + 1) % 3, y)
    elif change == "estimator":
        profiler.set_params(estimator__n_neighbors=4)
    elif change == "weights":
        weight = np.where(np.arange(40) < 20, 1.0, 2.0)
    else:
        profiler.set_params(**{"random_state": 1} if change == "random_state" else {change: 0.3})
    profiler.fit(X, y, weight)
    assert len(trained) == 8
    assert_same(profiler, profiler.set_params(folder=None).fit(X, y, weight))


@pytest.mark.slow
def test_the_layout_of_X_does_not_matter(blobs, tmp_path, expected, trained):
    X, y = blobs
    small(folder=tmp_path).fit(X, y)
    for other in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2]):
        assert_same(small(folder=tmp_path).fit(other, y), expected)
    assert len(trained) == 4


def test_folder_needs_splits_that_come_again(blobs, tmp_path):
    for random_state in (None, np.random.RandomState(0)):
        with pytest.raises(ValueError, match=r"random_state must be an integer where a folder"):
            small(folder=tmp_path, random_state=random_state).fit(*blobs)
