"""Every study in the papers' own size ends on tiny data, and a second call trains nothing."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks.papers import full, full_depth
from benchmarks.papers.__main__ import main
from benchmarks.papers.full import full_task, image_settings, rmd_methods
from benchmarks.papers.images import Pictures
from benchmarks.papers.published import PUBLISHED, image_set
from benchmarks.papers.students import Plan, Settings, Trainer, make_optimizer
from skcalib.losses.functional import cross_entropy_loss

STUDIES = {
    "rmd": ["--only", "Poly"],
    "gra": ["--network", "resnet18", "--only", "FLSD-GRA"],
    "prio": ["--network", "resnet18", "--target", "resnet18", "--only", "focal"],
    "depth": ["--networks", "10", "--only", "mlp"],
}

# Before the fixture below makes it small.
PERCEPTRON = full_depth.NETWORKS["mlp"]


@pytest.fixture
def data(tmp_path):
    """Random images in the format of the real ones."""
    rng = np.random.default_rng(0)
    arrays = {}
    for split, n_images in (("train", 60), ("test", 20)):
        files = []
        for image in rng.integers(0, 256, (n_images, 32, 32, 3), dtype=np.uint8):
            file = io.BytesIO()
            Image.fromarray(image).save(file, "JPEG")
            files.append(np.frombuffer(file.getvalue(), dtype=np.uint8))
        arrays[f"{split}_jpeg"] = np.concatenate(files)
        arrays[f"{split}_offsets"] = np.cumsum([0, *map(len, files)])
        arrays[f"{split}_y"] = np.arange(n_images) % 3
    np.savez(tmp_path / "cifar10_jpeg.npz", **arrays)
    return tmp_path


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    def narrow(name, n_classes):
        layers = torch.nn.Sequential(
            torch.nn.Conv2d(3, 4, 3, stride=8), torch.nn.ReLU(), torch.nn.Flatten()
        )
        layers.fc = torch.nn.Linear(4 * 16, n_classes)
        return layers

    monkeypatch.setattr(full, "cifar_resnet", narrow)
    small = lambda n_classes: full_depth.MLP(3 * 32 * 32, n_classes, hidden_layer_sizes=(8,))
    monkeypatch.setitem(full_depth.NETWORKS, "mlp", small)


# The networks are as good as untrained.
@pytest.mark.filterwarnings("ignore:The depth is undefined", "ignore:The temperature is at")
@pytest.mark.parametrize("study", STUDIES)
def test_a_study_ends_and_goes_on_where_it_stopped(study, data, capsys):
    arguments = [
        study, "--scale", "full", "--data", str(data), "--out", str(data / "out"),
        "--epochs", "2", "--images", "50", "--seeds", "1", "--threads", "1", *STUDIES[study],
    ]  # fmt: skip
    main(arguments)
    (path,) = (data / "out").glob("*.jsonl")
    text = path.read_text()
    for row in map(json.loads, text.splitlines()):
        assert "2 epochs, 50 images" in row["key"]["setting"]
        found = row["points"]["last"] if study != "depth" else {
            "accuracy": row["found"]["mlp"]["accuracy, held out"]["last"]["value"]
        }  # fmt: skip
        assert 0 <= found["accuracy"] <= 1
    main(arguments)
    assert path.read_text() == text


@pytest.mark.filterwarnings("ignore:The temperature is at", "ignore:X is far below chance")
def test_a_method_by_its_name_is_that_one_alone(data, capsys):
    arguments = ["gra", "--scale", "full", "--data", str(data), "--out", str(data / "out")]
    arguments += ["--epochs", "1", "--images", "20", "--seeds", "1", "--network", "resnet18"]
    main([*arguments, "--only", "BSCE"])
    rows = (data / "out" / "full_gra.jsonl").read_text().splitlines()
    assert [json.loads(row)["key"]["method"] for row in rows] == ["BSCE"]


def test_no_run_begins_that_would_not_end_in_time(data, capsys):
    arguments = ["gra", "--scale", "full", "--data", str(data), "--out", str(data / "out")]
    main([*arguments, "--epochs", "1", "--images", "20", "--minutes", "0"])
    assert capsys.readouterr().out.startswith("The time is up before")
    assert not (data / "out" / "full_gra.jsonl").exists()


def test_mixup_trains_on_mixtures_of_images_and_labels():
    torch.manual_seed(0)
    inputs, seen = Pictures(torch.rand(6, 3, 2, 2)), []

    def loss(logits, target):
        seen.append(target)
        return cross_entropy_loss(logits, target)

    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 3))
    plan = Plan(loss, np.arange(6) % 3, mixup_alpha=1.0)
    Trainer(net, inputs, plan, Settings(n_epochs=1)).step(torch.arange(6))
    torch.testing.assert_close(seen[0].sum(dim=1), torch.ones(6))
    assert ((seen[0] > 0) & (seen[0] < 1)).any()


@pytest.mark.parametrize(("guide", "line"), [("target of the epoch", 1), ("fixed target", 3)])
def test_a_target_after_e_epochs_guides_epoch_e(guide, line, data, monkeypatch):
    options = SimpleNamespace(
        dataset="cifar10", data=data, out=data, epochs=4, images=20, device="cpu", features=None
    )
    task = full_task(options, "resnet18", 0)
    entropies = np.random.default_rng(0).random((4, 18))
    monkeypatch.setattr(full, "target_entropies", lambda *how: entropies)
    epochs = []

    def chosen(trainer, n_epochs, choose):
        epochs.extend(choose(trainer.net, epoch).tolist() for epoch in range(n_epochs))
        return ()

    monkeypatch.setattr(full.Trainer, "epochs", chosen)
    monkeypatch.setattr(full, "judged", lambda *found: {})
    full.prioritized(options, task, "cross-entropy", 0.3, guide)
    # Two of four epochs warm up.
    assert [len(rows) for rows in epochs] == [18, 18, 5, 5]
    assert epochs[2] == np.argsort(-entropies[line])[:5].tolist()


def test_gray_images_get_a_border_and_three_channels(data):
    gray = np.random.default_rng(0).integers(0, 256, (4, 28, 28), dtype=np.uint8)
    parts = {f"{split}_{what}": value for split in ("train", "test")
             for what, value in (("images", gray), ("y", np.arange(4)))}  # fmt: skip
    np.savez(data / "fashion_mnist.npz", **parts)
    (images, _), _ = image_set(SimpleNamespace(dataset="fashion_mnist", data=data))
    assert images.shape == (4, 32, 32, 3)
    assert (images[:, 2:-2, 2:-2] == gray[..., None]).all()
    assert images.sum() == 3 * gray.sum(dtype=int)


def _options(**options):
    return SimpleNamespace(
        **{"dataset": "cifar10", "epochs": None, "device": "cpu", "features": None, **options}
    )


def test_settings_are_those_that_the_papers_print():
    """Typed again from the papers, and read off what the studies would train."""
    rmd, gra = (image_settings(_options(), study) for study in ("rmd", "gra"))
    assert (rmd.weight_decay, rmd.n_epochs, PUBLISHED["students"]["rmd"]["network"]) == (
        1e-4, 200, "resnet34",
    )  # fmt: skip
    assert (gra.lr, gra.n_epochs, gra.milestones) == (0.1, 350, (150, 250))
    net = torch.nn.Linear(1, 1)
    optimizer, schedule = make_optimizer(net, gra)
    rates = []
    for _ in range(350):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert [rates[i] for i in (149, 150, 249, 250)] == pytest.approx([0.1, 0.01, 0.01, 0.001])
    methods = {m.name: m for m in rmd_methods(_options(features="x"))}
    assert methods["difficulty-aware, as published"].candidates == (
        {"temperature": 0.7, "alpha": 0.3},
    )
    for dataset, alpha in (("cifar10", 0.05), ("cifar100", 0.01)):
        options = {m.name: m.candidates for m in rmd_methods(_options(dataset=dataset))}
        assert options == {
            "cross-entropy": ({},), "label smoothing": ({"alpha": 0.1},),
            "focal": ({"gamma": 3.0},), "L1 of logits": ({"alpha": alpha},),
            "entropy regularization": ({"alpha": 0.1},), "Poly-1": ({"epsilon": 1.0},),
            "correctness ranking": ({"weight": 1.0},),
        }  # fmt: skip
    options = {m.name: m.candidates for m in full.gra_methods(_options())}
    assert options.pop("focal") == ({"gamma": 3.0},)
    assert "BSCE-GRA" in options
    assert all(candidates == ({},) for candidates in options.values())


@pytest.mark.parametrize(
    ("dataset", "loss", "guided", "values"),
    [
        ("cifar10", "mixup", False, (0.1, 0.3, 0.2, 0.15)),
        ("cifar10", "mixup", True, (0.1, 0.3, 0.15, 0.15)),
        ("cifar10", "focal", False, (1, 3, 3, 3)),
        ("cifar10", "focal", True, (1, 2, 2, 1)),
        ("cifar10", "label smoothing", False, (0.03, 0.05, 0.05, 0.03)),
        ("cifar10", "label smoothing", True, (0.03, 0.05, 0.05, 0.03)),
        ("cifar100", "label smoothing", True, (0.03, 0.03, 0.03, 0.09)),
        ("cifar100", "mixup", False, (0.15, 0.15, 0.15, 0.35)),
        ("cifar100", "mixup", True, (0.15, 0.2, 0.15, 0.15)),
        ("cifar100", "focal", False, (1, 3, 3, 5)),
        ("cifar100", "focal", True, (1, 2, 3, 2)),
        ("cifar100", "label smoothing", False, (0.03, 0.03, 0.03, 0.09)),
    ],
)
def test_prioritization_has_the_parameters_of_its_tables(dataset, loss, guided, values):
    task = SimpleNamespace(given=[0])
    for fraction, value in zip((1.0, 0.3, 0.2, 0.1), values):
        plan = full.plan_of(_options(dataset=dataset), loss, fraction, task, guided=guided)
        if loss == "mixup":
            assert plan.mixup_alpha == value
        else:
            assert list(plan.loss.keywords.values()) == [value]
    assert full.published(_options(dataset=dataset))["lr"] == {
        "cifar10": 0.01, "cifar100": 0.1,
    }[dataset]  # fmt: skip
    assert PUBLISHED["prio"]["warmup epochs"] == 10


@pytest.mark.parametrize(
    ("dataset", "n_images", "wanted"),
    [
        ("svhn", 65_931, {"resnet18": (0.04, 0.95, [7000]),
                          "vgg16": (0.04, 0.9, [3000, 6000, 1000]),
                          "mlp": (0.04, 0.9, [2500, 5500, 2000])}),
        ("fashion_mnist", 54_000, {"resnet18": (0.01, 0.95, [4000, 3000]),
                                   "vgg16": (0.01, 0.95, [3000, 6000, 1000]),
                                   "mlp": (0.04, 0.5, [10000, 2500])}),
        ("cifar10", 45_000, {"resnet18": (0.04, 0.95, [7000]), "vgg16": (0.04, 0.9, [5000, 1000]),
                             "mlp": (0.02, 0.9, [5000, 1250, 1000])}),
        ("cifar100", 45_000, {"resnet18": (0.1, 0.95, [6000]), "vgg16": (0.04, 0.9, [2500, 7500]),
                              "mlp": (0.1, 0.95, [2500, 6000, 1500])}),
        ("cifar10 flipped", 45_000, {"vgg16": (0.04, 0.9, [5000, 10000]),
                                     "mlp": (0.02, 0.9, [12000, 1250, 4000])}),
    ],
)  # fmt: skip
def test_example_difficulty_has_the_rates_and_steps_of_its_table(dataset, n_images, wanted):
    for name, (rate, momentum, steps) in wanted.items():
        options = _options(networks=10, dataset=dataset.split()[0])
        flipped = dataset.endswith("flipped")
        net = full_depth.scorer(options, name, flipped=flipped).estimator
        assert (net.lr, net.get_params()["optimizer__momentum"]) == (rate, momentum)
        assert net.batch_size == 256
        per_epoch = n_images / 256
        (scheduler,) = net.callbacks
        ends = [*scheduler.kwargs["milestones"], net.max_epochs]
        assert np.abs(np.array(ends) * per_epoch - np.cumsum(steps)).max() <= per_epoch
        assert scheduler.kwargs["gamma"] == pytest.approx(1 / 5)
        if flipped:
            assert full_depth.epochs_for_flips(options, name) is None
    if dataset == "svhn":
        n_epochs = full_depth.scorer(_options(dataset=dataset), "mlp").estimator.max_epochs
        assert full_depth.epochs_for_flips(_options(dataset=dataset), "mlp") == 2 * n_epochs


@pytest.mark.slow
def test_networks_of_example_difficulty_are_those_printed():
    mlp, vgg = PERCEPTRON(10), full_depth.NETWORKS["vgg16"](10)
    widths = [m.out_features for m in mlp.modules() if isinstance(m, torch.nn.Linear)]
    assert widths == [2048] * 7 + [10]
    assert not any(isinstance(m, torch.nn.BatchNorm2d) for m in vgg.modules())
