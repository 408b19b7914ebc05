"""The engine of the papers: statistics, records, the student and the settings in full."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.sparse import random as random_sparse
from scipy.stats import ttest_rel

from benchmarks.papers import full, guided_train, prio_images
from benchmarks.papers import images as cifar
from benchmarks.papers.images import Pictures
from benchmarks.papers.methods import CE, FOCAL
from benchmarks.papers.results import Part, collected
from benchmarks.papers.runner import Records, chosen, compare, found
from benchmarks.papers.statistics import paired
from benchmarks.papers.students import Settings, Trainer, logits_of, train
from benchmarks.papers.tasks import Task
from benchmarks.papers.texts import BagNet, Bags


def test_paired_difference_is_that_of_scipy():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 6))
    mean, error, p = paired(a, b)
    assert mean == pytest.approx((a - b).mean())
    assert p == pytest.approx(ttest_rel(a, b).pvalue)
    assert mean / error == pytest.approx(ttest_rel(a, b).statistic)


def test_bag_net_is_a_perceptron_on_the_dense_matrix():
    torch.manual_seed(0)
    matrix = random_sparse(7, 12, density=0.3, format="csr", random_state=0, dtype=np.float32)
    net, bags = BagNet(12, n_hidden=5, n_classes=3), Bags(matrix)
    dense = torch.from_numpy(matrix.toarray())
    expected = net.output((dense @ net.words[:-1] + net.bias).relu())
    torch.testing.assert_close(net(*bags[torch.arange(7)]), expected)


def _task(seed, n=40):
    rng = np.random.default_rng(seed)
    y = np.tile(np.arange(2), n // 2)
    images = torch.from_numpy(rng.normal(size=(n, 3, 2, 2)).astype(np.float32))
    images[:, 0] += torch.from_numpy(y)[:, None, None]
    parts = {name: Pictures(images) for name in ("train", "val", "test")}
    make = lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
    return Task(
        inputs=parts, given=y, true=y, features=None, val_labels={"clean": y}, test_labels=y,
        make_net=make, seed=seed,
    )  # fmt: skip


@pytest.mark.slow
def test_a_second_call_trains_nothing_and_reported_seeds_choose_nothing(tmp_path):
    made = []

    def make(seed):
        made.append(seed)
        return _task(seed)

    for _ in range(2):
        records = Records(tmp_path / "runs.jsonl")
        settings = Settings(n_epochs=2, batch_size=10)
        compare(records, make, (CE, FOCAL), settings, "toy", range(4))
    assert made == [100, 0, 1, 2, 3]
    best = chosen(records, "focal", "toy")["last"]
    screened = {
        row["key"]["options"]["gamma"]: row["points"]["last"]["val_nll"]
        for row in records.where(method="focal", seed=100)
    }
    assert best["gamma"] == min(screened, key=screened.get)
    focal = collected(records, Part(run=None))["toy"]["focal"]
    assert {"last", "stop"} == focal.keys()
    assert focal["last"]["options"] == best
    assert len(focal["last"]["accuracy"]) == 4


@pytest.mark.slow
def test_a_replication_has_the_options_of_the_results_and_chooses_nothing(tmp_path):
    known = {"toy": {"focal": {"last": {"options": {"gamma": 4.0}}}}}
    records = Records(tmp_path / "runs.jsonl", settings=known, only={("toy", "focal")})
    settings = Settings(n_epochs=2, batch_size=10)
    compare(records, _task, (CE, FOCAL), settings, "toy", range(200, 204))
    assert [row["key"] for row in records.rows.values()] == [
        {"setting": "toy", "method": "focal", "options": {"gamma": 4.0}, "seed": seed}
        for seed in range(200, 204)
    ]
    assert collected(records, Part(run=None))["toy"]["focal"]["last"]["options"] == {"gamma": 4.0}


@pytest.mark.slow
def test_all_candidates_of_a_sensitivity_are_kept_and_a_measured_number_of_many_names(tmp_path):
    records = Records(tmp_path / "runs.jsonl")
    settings = Settings(n_epochs=1, batch_size=10)
    compare(records, _task, (CE, FOCAL), settings, "toy", range(4), every=True, stops=False)
    for seed in range(4):
        values = {"a": seed, "b": 0.123456}
        records.get({"setting": "x", "seed": seed}, lambda v=values: found("flips", "AUROC", v))
    settings = collected(records, Part(run=None))
    names = [f'focal {{"gamma": {gamma}}}' for gamma in (0.5, 1.0, 2.0, 4.0)]
    assert list(settings["toy"]) == ["cross-entropy", *names]
    assert settings["toy"][names[2]]["last"]["options"] == {"gamma": 2.0}
    assert settings["flips"]["a"]["last"]["AUROC"] == [0, 1, 2, 3]
    assert settings["flips"]["b"]["last"]["AUROC"] == [0.1235] * 4


@pytest.mark.slow
@pytest.mark.parametrize("study", ["rmd", pytest.param("gra", marks=pytest.mark.long)])
def test_settings_in_full_train(study, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    images, y = rng.integers(0, 256, (20, 32, 32, 3), dtype=np.uint8), np.arange(20) % 2
    monkeypatch.setattr("benchmarks.papers.published.pictures", lambda folder, split: (images, y))
    np.savez(tmp_path / "cifar10h.npz", counts=np.ones((20, 10)))
    np.savez(tmp_path / "features.npz", train=rng.normal(size=(20, 3)))
    options = SimpleNamespace(
        study=study, dataset="cifar10", network="resnet18", data=tmp_path, out=tmp_path,
        epochs=1, images=20, features=tmp_path / "features.npz", device="cpu", seeds=range(1),
        only="difficulty-aware, min-max" if study == "rmd" else "BSCE-GRA",
    )  # fmt: skip
    full.parts(study)[f"full_{study}"].run(options, Records(tmp_path / "full.jsonl"))
    (row,) = Records(tmp_path / "full.jsonl").rows.values()
    assert np.isfinite(row["points"]["last"]["nll"])
    assert np.isfinite(row["points"]["last"]["human_kl"])


def test_shifted_and_flipped_images_keep_their_pixels():
    torch.manual_seed(0)
    images = torch.rand(6, 3, 32, 32) + 1
    (moved,) = Pictures(images, augment=True)[torch.arange(6)]
    assert moved.shape == images.shape
    for before, after in zip(images, moved):
        windows = torch.nn.functional.pad(before, (4, 4, 4, 4)).unfold(1, 32, 1).unfold(2, 32, 1)
        windows = windows.permute(1, 2, 0, 3, 4).reshape(-1, 3, 32, 32)
        same = [(windows - image).abs().flatten(1).max(1).values.min() for image in
                (after, after.flip(-1))]  # fmt: skip
        assert min(same) == 0


@pytest.fixture
def small_cifar(monkeypatch):
    monkeypatch.setattr(cifar, "N_TRAIN", 60)
    monkeypatch.setattr(cifar, "N_TEST", 40)
    rng, n = np.random.default_rng(0), 120
    images = cifar.Cifar.__new__(cifar.Cifar)
    images.labels = np.arange(n) % 3
    # The first pixel says which image it is.
    images.inputs = torch.arange(float(n))[:, None, None, None].expand(n, 3, 16, 16)
    images.features = rng.normal(size=(n, 4)) + images.labels[:, None]
    images.rotation = rng.normal(size=(n, 4))
    images.human = np.full((n, 3), 1 / 3)
    images.ood = Pictures(images.inputs[:5])
    return images


@pytest.mark.parametrize("noise", ["clean", "U20", "I20"])
def test_images_are_in_one_part_and_those_to_test_on_are_the_same_for_all_seeds(
    noise, small_cifar
):
    tasks = [cifar.cifar_task(small_cifar, noise, seed) for seed in (0, 1)]
    parts = [{n: p.images[:, 0, 0, 0].numpy() for n, p in t.inputs.items()} for t in tasks]
    for task, part in zip(tasks, parts):
        together = np.concatenate([part[name] for name in ("train", "val", "test")])
        assert sorted(together) == list(range(120))
        assert (task.true == part["train"] % 3).all()
        assert (task.given != task.true).sum() == (0 if noise == "clean" else 12)
    np.testing.assert_array_equal(parts[0]["test"], parts[1]["test"])
    assert (parts[0]["train"] != parts[1]["train"]).any()


@pytest.fixture
def training_images(monkeypatch):
    monkeypatch.setattr(guided_train, "N_TRAIN", 30)
    monkeypatch.setattr(guided_train, "N_VAL", 10)
    monkeypatch.setattr(cifar, "N_TURNED", 20)
    images = guided_train.Images.__new__(guided_train.Images)
    images.y, images.y_test = np.arange(60) % 3, np.arange(20) % 3
    # The first pixel says which image it is; the features say it, too.
    images.inputs = torch.arange(60.0)[:, None, None, None].expand(60, 3, 8, 8)
    images.test = images.ood = Pictures(images.inputs[:20])
    images.human = np.full((20, 3), 1 / 3)
    images.features = {
        name: (np.arange(60.0)[:, None], np.arange(20.0)[:, None]) for name in guided_train.GUIDES
    }
    return images


@pytest.mark.parametrize("noise", ["clean", "U20"])
def test_guides_of_training_images_have_seen_none_that_students_learn(noise, training_images):
    tasks = [training_images.task(noise, seed) for seed in (0, 1)]
    for task in tasks:
        train, val = (task.inputs[name].images[:, 0, 0, 0].numpy() for name in ("train", "val"))
        assert sorted([*train, *val]) == list(range(60 - 20))
        assert (task.true == train % 3).all()
        assert (task.val_labels["clean"] == val % 3).all()
        assert (task.given != task.true).sum() == (0 if noise == "clean" else 6)
        for name in guided_train.GUIDES.values():
            np.testing.assert_array_equal(getattr(task, name)[:, 0], train)
    assert (tasks[0].true != tasks[1].true).any()


def test_severities_become_settings_with_what_the_loss_gains_over_decay():
    decay, loss = guided_train.DECAY.name, guided_train.BY_LITE
    runs = {
        noise: {
            name: {"last": {"accuracy": [0.5, 0.6]} | {
                guided_train.at(metric, k): [error * k, error]
                for metric in guided_train.UNDER for k in range(6)
            }}
            for name, error in ((decay, 0.03), (loss, 0.01), ("cross-entropy", 0.05))
        }
        for noise in ("clean", "U20")
    }  # fmt: skip
    settings = guided_train.with_severities(runs)
    for noise in ("clean", "U20"):
        assert settings[noise][loss] == {"last": {"accuracy": [0.5, 0.6]}}
    assert settings["severity 2"].keys() == {decay, loss}
    assert settings["severity 2"][loss]["last"]["ECE"] == [0.02, 0.01]
    less = settings[guided_train.LESS]
    assert less["severity 5"]["last"]["ECE"] == pytest.approx([0.1, 0.02])
    assert less["severity 0"]["last"]["ECE"] == pytest.approx([0.0, 0.02])


def test_difficulty_by_rotation_reads_other_features(small_cifar):
    task = cifar.cifar_task(small_cifar, "U20", 0)
    other = cifar.cifar_task(small_cifar, "U20", 0)
    other.features = other.rotation
    assert (task.difficulty("RMD") != task.difficulty("RMD by rotation")).any()
    np.testing.assert_array_equal(task.difficulty("RMD by rotation"), other.difficulty("RMD"))


def test_images_out_of_distribution_have_the_size_of_the_others():
    for images in (cifar.enlarged_digits(), cifar.crops()):
        assert images.shape == (cifar.N_OOD, 32, 32, 3)
        assert images.dtype == np.uint8


@pytest.mark.slow
def test_stopped_logits_are_those_of_the_epoch_that_stopped():
    task = _task(0)
    plan = CE.plan(task)
    trained = train(task, plan, Settings(n_epochs=6, lr=1.0, batch_size=5), seed=0)
    again = train(
        task, plan, Settings(n_epochs=trained.epochs["clean"], lr=1.0, batch_size=5), seed=0
    )
    np.testing.assert_array_equal(trained.stops["clean"]["test"], again.last["test"])
    np.testing.assert_array_equal(
        logits_of(trained.net, task.inputs["test"]).numpy(), trained.last["test"]
    )


@pytest.fixture
def few_images(monkeypatch):
    rng = np.random.default_rng(0)
    sets = {
        split: (rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), np.arange(n) % 10)
        for split, n in (("train", 120), ("test", 50))
    }
    monkeypatch.setattr(prio_images, "pictures", lambda folder, split, n=None: sets[split])
    monkeypatch.setattr(prio_images, "human_proba", lambda folder: np.full((50, 10), 0.1))
    for name, n in {"N_TRAIN": 60, "N_VAL": 40, "N_TEST": 50}.items():
        monkeypatch.setattr(prio_images, name, n)
    return prio_images.Images(None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The temperature is at its upper bound")
@pytest.mark.parametrize("name", ["cross-entropy", "random samples", "cross-entropy, target"])
def test_after_two_epochs_a_guide_chooses_the_images_of_an_epoch(
    name, few_images, tmp_path, monkeypatch
):
    seen, step = [], Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda self, b: (seen.append(b.numpy()), step(self, b)))
    recorded = np.random.default_rng(1).random((4, 60))  # of a target, four epochs
    np.save(tmp_path / "prio_images_target_3.npy", recorded)
    settings = replace(prio_images.SETTINGS, n_epochs=4, batch_size=60)
    method = replace(prio_images.CE, name=name)
    row = prio_images.prioritized(
        tmp_path, 0.2, few_images.task(3), method, {}, settings, 3, False
    )
    assert [len(rows) for rows in seen] == [60, 60, 12, 12]
    assert set(seen[0]) == set(range(60))
    assert set(seen[2]) != set(seen[3])
    if name.endswith("target"):
        # The third epoch trains on what the target was unsure of after its second one.
        for rows, scores in zip(seen[2:], recorded[1:]):
            assert set(rows) == set(np.argsort(-scores)[:12])
    assert 0 <= row["points"]["last"]["accuracy"] <= 1


@pytest.mark.slow
def test_a_target_is_trained_once_and_kept(few_images, tmp_path):
    settings, task = replace(prio_images.SETTINGS, n_epochs=2), few_images.task(0)
    entropies = prio_images.target_entropies(tmp_path, task, settings)
    assert entropies.shape == (2, 60)
    assert (entropies > 0).all()
    assert (entropies <= np.log(10) + 1e-5).all()
    np.testing.assert_array_equal(
        prio_images.target_entropies(tmp_path, task, settings), entropies
    )
