"""Names of columns as tools write them: read rightly, or refused, and never inverted."""

import numpy as np
import pandas as pd
import pytest

from skcalib.report._read import read_predictions

from .headers import FORMS, SINGLE, Header, of_all_classes, of_one_class

N = 24


def probabilities(n_columns, seed=0):
    rng = np.random.default_rng(seed)
    proba = np.floor(rng.dirichlet(np.ones(n_columns), size=N) * 1024) / 1024
    proba[:, 0] = 1 - proba[:, 1:].sum(axis=1)
    return proba


def read(header: Header, path):
    """Return the probabilities of every class as they are read, and as they were written."""
    classes = list(header.columns.values())
    proba = probabilities(max(len(classes), 2))
    written = {label: proba[:, k] for k, label in enumerate(classes)}
    labels = np.resize(np.array(header.labels), N)
    frame = pd.DataFrame({"churn": labels})
    for name, label in header.columns.items():
        frame[name] = written[label]
    for name, value in header.others.items():
        frame[name] = value
    frame.to_csv(path, index=False)
    found = read_predictions(path, label="churn")
    if found["y_proba"].ndim == 1:
        return {found["pos_label"]: found["y_proba"]}, written
    return dict(zip(found["labels"], found["y_proba"].T)), written


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_a_column_for_every_class(form, tmp_path):
    headers = [header for header in of_all_classes() if header.form == form]
    assert len(headers) == 20
    for number, header in enumerate(headers):
        found, written = read(header, tmp_path / f"{number}.csv")
        assert set(found) == set(written), header
        for label, proba in written.items():
            np.testing.assert_array_equal(found[label], proba, err_msg=str(header))


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_one_column_is_of_the_class_that_it_names(form, tmp_path):
    headers = [header for header in of_one_class() if header.form == form]
    assert len(headers) == 22
    for number, header in enumerate(headers):
        found, written = read(header, tmp_path / f"{number}.csv")
        assert list(found) == list(written), header


@pytest.mark.parametrize(("name", "labels", "meant"), SINGLE)
def test_names_of_one_column(name, labels, meant, tmp_path):
    header = Header("", labels, {name: "whatever"}, {})
    if meant == "refused":
        with pytest.raises(ValueError, match=r"pos_label must say of which class column"):
            read(header, tmp_path / "p.csv")
    else:
        assert list(read(header, tmp_path / "p.csv")[0]) == [meant]
