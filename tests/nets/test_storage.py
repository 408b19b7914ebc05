import pickle
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from skorch.callbacks import Callback

from skcalib.difficulty import PredictionDepthScorer
from skcalib.nets import MLP, CalibratedNetClassifier

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


def make_net(**params):
    return CalibratedNetClassifier(MLP, **{"max_epochs": 3, "random_state": 0, **params})


@pytest.mark.parametrize("labels", [NAMES, NAMES.astype(object), Y, Y > 0, Y * 2.0 - 1, Y - 7])
def test_a_fresh_net_predicts_as_the_saved_one(tmp_path, labels):
    net = make_net().fit(X, labels)
    net.save(tmp_path / "net.pt")
    again = make_net(random_state=1).load(tmp_path / "net.pt")
    np.testing.assert_array_equal(again.predict_proba(X), net.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), net.predict(X))
    np.testing.assert_array_equal(again.classes_, net.classes_)
    assert again.classes_.dtype == net.classes_.dtype
    assert again.n_features_in_ == 4
    assert again.score(X, labels) == net.score(X, labels)


@pytest.mark.slow
def test_another_process_predicts_as_the_saved_net(tmp_path):
    net = make_net().fit(X, NAMES)
    net.save(tmp_path / "net.pt")
    np.save(tmp_path / "X.npy", X)
    code = f"""
import numpy as np
from skcalib.nets import MLP, CalibratedNetClassifier
net = CalibratedNetClassifier(MLP).load(r"{tmp_path / "net.pt"}")
print(*net.predict(np.load(r"{tmp_path / "X.npy"}")))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.split() == net.predict(X).tolist()


def test_names_of_columns_are_kept(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    make_net().fit(frame, NAMES).save(tmp_path / "net.pt")
    net = make_net().load(tmp_path / "net.pt")
    assert net.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        net.predict(frame[list("dcba")])


@pytest.mark.slow
def test_a_loaded_net_can_be_trained_further(tmp_path):
    make_net(max_epochs=50).fit(X, NAMES).save(tmp_path / "net.pt")
    net = make_net().load(tmp_path / "net.pt")
    before = net.score(X, NAMES)
    assert net.partial_fit(X, NAMES).score(X, NAMES) > before - 0.05
    assert len(net.history) == 3


def test_what_does_not_fit_is_told(tmp_path):
    path = tmp_path / "net.pt"
    with pytest.raises(NotFittedError):
        make_net().save(path)
    make_net().fit(X, NAMES).save(path)
    with pytest.raises(
        ValueError,
        match=r"(?s)must have the parameters saved in .*size mismatch for layers",
    ):
        make_net(module__hidden_layer_sizes=(7,)).load(path)
    with pytest.raises(ValueError, match="classes must be None or the saved labels"):
        make_net(classes=["a", "b", "c"]).load(path)
    torch.save(MLP(4, 3).state_dict(), path)
    with pytest.raises(ValueError, match="path must be a file that save has written"):
        make_net().load(path)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("sizes", None),
        ("sizes", {"n_features": 4, "n_channels": 4, "n_classes": 2}),
        ("sizes", {"n_features": -4, "n_classes": 3}),
        ("sizes", {"n_features": True, "n_classes": 3}),
        ("sizes", {"n_features": 4, "n_classes": 3, "n_rows": 3}),
        ("classes", ["setosa", "versicolor"]),
        ("classes", ["setosa", "setosa", "versicolor"]),
        ("classes", ["setosa", None, "versicolor"]),
        ("classes", [["setosa"], ["versicolor"], ["virginica"]]),
        ("classes", 3),
        ("classes_dtype", None),
        ("classes_dtype", "datetime64[D]"),
        ("module", []),
        ("module", {0: torch.ones(2)}),
        ("module", {"layers.1.weight": torch.ones(100, 4, dtype=torch.complex64)}),
        ("module", {"layers.1.weight": torch.ones(100, 4, device="meta")}),
        ("n_features_in", "4"),
        ("n_features_in", -4),
        ("feature_names_in", ["a"]),
    ],
)
@pytest.mark.parametrize("missing", [False, True])
def test_a_file_with_other_contents_is_refused(tmp_path, part, value, missing):
    path = tmp_path / "net.pt"
    make_net().fit(X, NAMES).save(path)
    record = torch.load(path) | {part: value}
    if missing:
        del record[part]
    torch.save(record, path)
    with pytest.raises(ValueError, match=r"^path must be a file .* with other contents at "):
        make_net().load(path)


def test_code_in_a_file_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    torch.save({"format": 1, "module": Evil()}, tmp_path / "net.pt")
    with pytest.raises(ValueError, match=r"torch cannot read .*Weights only load failed"):
        make_net().load(tmp_path / "net.pt")


def test_labels_that_are_no_plain_values_cannot_be_saved(tmp_path):
    dates = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")[Y]
    net = make_net().fit(X, NAMES)
    net.classes_inferred_ = np.unique(dates)
    with pytest.raises(TypeError, match="classes_ must be numbers or strings to be saved"):
        net.save(tmp_path / "net.pt")


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path):
    resource = pytest.importorskip("resource")
    path = tmp_path / "net.pt"
    net = make_net().fit(X, NAMES)
    net.save(path)
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises((OSError, RuntimeError)):
            net.save(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def saved(tmp_path, **fields):
    path = tmp_path / "net.pt"
    make_net().fit(X, NAMES).save(path)
    record = torch.load(path, weights_only=True)
    for name, value in fields.items():
        record[name] = value
    torch.save(record, path)
    return path


def damaged(tmp_path, kind):
    path = saved(tmp_path)
    contents = path.read_bytes()
    if kind == "truncated":
        path.write_bytes(contents[: len(contents) // 2])
    else:
        path.write_bytes({"empty": b"", "junk": b"no net at all", "pickle": pickle.dumps(1)}[kind])
    return path


@pytest.mark.parametrize("kind", ["empty", "junk", "truncated", "pickle"])
def test_what_torch_cannot_read_is_a_value_error_that_names_the_file(tmp_path, kind):
    with pytest.raises(ValueError, match=r"path must be a file that save has written.*net\.pt"):
        make_net().load(damaged(tmp_path, kind))
    with pytest.raises(FileNotFoundError):
        make_net().load(tmp_path / "none.pt")


@pytest.mark.parametrize("form", [2, True, torch.ones(2), None])
def test_a_file_of_another_format_is_refused(tmp_path, form):
    with pytest.raises(ValueError, match=r"path must be a file .* with other contents"):
        make_net().load(saved(tmp_path, format=form))


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        {"sizes": {"n_classes": 3}},
        {"sizes": {"n_features": 10**11, "n_classes": 3}},
        {"sizes": {"n_features": 10**30, "n_classes": 3}},
        {"module": {"layers.1.weight": [1.0]}},
        {"module": {f"layers.{i}.weight": torch.ones(1) for i in range(500)}},
        {"module": {"layers\n" * 300: torch.ones(1)}},
    ],
    ids=["no sizes", "40 TB", "more than an integer", "lists", "many parameters", "a long name"],
)
def test_parameters_of_another_module_are_refused_in_one_sentence(tmp_path, fields):
    with pytest.raises(ValueError, match=r"^module must .* saved in .*net\.pt") as caught:
        make_net().load(saved(tmp_path, **fields))
    assert len(str(caught.value).replace(str(tmp_path), "")) <= 500
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_any_broken_byte_is_a_value_error_or_other_numbers(tmp_path):
    path, rng = saved(tmp_path), np.random.default_rng(0)
    contents, messages = np.frombuffer(path.read_bytes(), np.uint8), []
    for _ in range(40):
        broken = contents.copy()
        broken[rng.integers(len(broken), size=4)] = rng.integers(256, size=4)
        path.write_bytes(broken[: -rng.integers(3) or None].tobytes())
        try:
            make_net().load(path)
        except ValueError as error:
            messages.append(str(error))
    assert len(messages) > 20
    assert not any("\n" in message for message in messages)


def test_an_error_of_reading_is_none_of_opening(tmp_path, monkeypatch):
    """A broken directory of the archive makes torch seek a place before the file."""

    def fail(*args, **kwargs):
        raise OSError(22, "Invalid argument")

    path = saved(tmp_path)
    monkeypatch.setattr(torch, "load", fail)
    with pytest.raises(ValueError, match=r"torch cannot read \(\[Errno 22\] Invalid argument\)"):
        make_net().load(path)


@pytest.mark.slow
@pytest.mark.parametrize("fitted", [False, True])
@pytest.mark.parametrize("fault", ["module", "classes", "junk", "callback"])
def test_a_load_that_fails_leaves_the_net_as_it_was(tmp_path, fitted, fault):
    class Broken(Callback):
        def initialize(self):
            if broken:
                raise ValueError("out of order")
            return self

    broken = False
    options = {"module": {"module__hidden_layer_sizes": (7,)}, "classes": {"classes": [0, 1, 2]}}
    net = make_net(callbacks=[Broken()], **options.get(fault, {}))
    labels = Y if fault == "classes" else NAMES
    if fitted:
        net.fit(X, labels)
        proba = net.predict_proba(X)
    broken = fault == "callback"
    path = damaged(tmp_path, "junk") if fault == "junk" else saved(tmp_path)
    with pytest.raises(ValueError):
        net.load(path)
    if fitted:
        np.testing.assert_array_equal(net.predict_proba(X), proba)
        assert net.classes_.tolist() == np.unique(labels).tolist()
    else:
        with pytest.raises(NotFittedError):
            net.predict(X)


# The compiler that leaves everything as it is.
COMPILED = {"compile": True, "compile__backend": "eager"}
# torch looks at tensors while it compiles, and warns of what it does itself.
compiling = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")


@pytest.mark.slow
@compiling
@pytest.mark.parametrize("loaded", [{}, COMPILED], ids=["to plain", "to compiled"])
@pytest.mark.parametrize("saved", [{}, COMPILED], ids=["plain", "compiled"])
def test_whether_a_net_is_compiled_does_not_matter(tmp_path, saved, loaded):
    net = make_net(**saved).fit(X, NAMES)
    net.save(tmp_path / "net.pt")
    again = make_net(**loaded).load(tmp_path / "net.pt")
    np.testing.assert_array_equal(again.predict_proba(X), net.predict_proba(X))


@pytest.mark.slow
@compiling
def test_layers_of_a_compiled_net_have_the_names_of_the_plain_one():
    scorers = [
        PredictionDepthScorer(FrozenEstimator(make_net(**options).fit(X, NAMES))).fit(X, NAMES)
        for options in ({}, COMPILED)
    ]
    plain, compiled = scorers
    assert compiled.layer_names_ == plain.layer_names_
    np.testing.assert_array_equal(compiled.difficulty(X), plain.difficulty(X))
