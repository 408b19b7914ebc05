"""The report of a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

from numpy.typing import ArrayLike
from scipy.sparse import issparse

from ..utils._arrays import calling
from ..utils._files import write_atomically
from ._csv import read_predictions
from ._data import read_data
from ._html import as_html
from ._markdown import as_markdown
from ._results import gather


class CalibrationReport:
    """What is to be known of the confidence of a classifier, on one page.

    Use :meth:`from_estimator`, :meth:`from_predictions` or :meth:`from_csv` to create one. The
    page begins with a verdict and answers questions: can the confidence be trusted, when should
    the model stay silent, which classes and which samples are the matter, and what would help. A
    notebook shows it by itself.

    Samples to judge on must be new to the classifier: on those that it was trained on, every
    answer of the report is too good.

    Parameters
    ----------
    results : dict
        The numbers, as in `results_`.

    Attributes
    ----------
    results_ : dict
        Every number of the page, by section, as numbers, strings, lists and dicts that
        ``json`` can write (with NaN where a number is not defined).

    See Also
    --------
    skcalib.metrics.calibration_error_interval : The intervals of calibration errors.
    skcalib.plots.ReliabilityDisplay : The reliability diagram alone.

    Notes
    -----
    Two classes may be given by both columns or by the probability of the positive class; the
    report is the same, and says of every number whether it is about the predicted class or about
    the second of the classes.

    `save` and the notebook need ``jinja2`` and ``matplotlib``: ``pip install 'skcalib[report]'``.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.report import CalibrationReport
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GaussianNB().fit(X[::2], y[::2])
    >>> report = CalibrationReport.from_estimator(model, X[1::2], y[1::2])
    >>> report
    CalibrationReport: Overconfident: says 98.8 %, is right 93.0 % (89.4-95.4).
    >>> round(report.results_["overview"]["accuracy"]["value"], 3)
    0.93
    """

    def __init__(self, results: dict[str, Any]) -> None:
        self.results_ = results

    @classmethod
    @calling("y_true", "y")
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        scorer: Any = None,
        images: Any = None,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
        random_state: Any = 0,
    ) -> Self:
        """Judge a fitted classifier on samples that are new to it.

        Parameters
        ----------
        estimator : object
            Fitted classifier with `predict_proba` and `classes_`.
        X : array-like of shape (n_samples, n_features), or whatever the classifier takes
            Samples.
        y : array-like of shape (n_samples,)
            Their labels.
        scorer : difficulty scorer or Pipeline that ends in one, default=None
            Fitted; says which samples are the hardest. None takes the log-loss of the classifier.
        images : sequence of n_samples images, texts or rows of a table, default=None
            What is shown of a sample. None shows X where it holds texts, images or named columns.
        groups : array-like of shape (n_samples,), dict or DataFrame of such, default=None
            Groups in which the classifier is judged besides.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of k counts as k samples. The test of calibration,
            the order of the hardest samples and the counts of samples do not depend on weights.
        random_state : int, RandomState instance or None, default=0
            Seed of resamples and folds.

        Returns
        -------
        report : CalibrationReport
            The report.

        Raises
        ------
        TypeError
            If `estimator` has no `predict_proba`.
        ValueError
            If the arguments do not fit together, see
            :func:`~skcalib.metrics.expected_calibration_error`.
        """
        for name in ("predict_proba", "classes_"):
            if not hasattr(estimator, name):
                raise TypeError(
                    f"estimator must be a fitted classifier with {name}, got {estimator!r}."
                )
        data = read_data(
            y,
            estimator.predict_proba(X),
            labels=estimator.classes_,
            groups=groups,
            sample_weight=sample_weight,
            random_state=random_state,
            model=type(estimator).__name__,
            features=X,
            shown=images if images is not None else _worth_showing(X),
            scorer=scorer,
        )
        return cls(gather(data))

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        images: Any = None,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
        random_state: Any = 0,
    ) -> Self:
        """Judge probabilities of samples that are new to the model that gave them.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels, integers or strings.
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities of the classes, in the order of `labels` or as columns of a DataFrame
            named by them, or of the positive class.
        labels : array-like of shape (n_classes,), default=None
            Labels of the columns of `y_proba`, in order. None: integers 0, ..., n_classes - 1 or,
            if `y_true` holds other labels, its sorted distinct values.
        pos_label : int, bool or str, default=None
            Label of the positive class where `y_proba` has shape (n_samples,). None: the second
            of `labels`, or 1 where the labels are in {0, 1} or {-1, 1}.
        images : sequence of n_samples images, texts or rows of a table, default=None
            What is shown of a sample.
        groups : array-like of shape (n_samples,), dict or DataFrame of such, default=None
            Groups in which the model is judged besides.
        sample_weight : array-like of shape (n_samples,), default=None
            As for :meth:`from_estimator`.
        random_state : int, RandomState instance or None, default=0
            Seed of resamples and folds.

        Returns
        -------
        report : CalibrationReport
            The report.

        Raises
        ------
        ValueError
            If the arguments do not fit together, see
            :func:`~skcalib.metrics.expected_calibration_error`.
        """
        data = read_data(
            y_true,
            y_proba,
            labels=labels,
            pos_label=pos_label,
            groups=groups,
            sample_weight=sample_weight,
            random_state=random_state,
            shown=images,
        )
        return cls(gather(data))

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        *,
        label: str = "label",
        pos_label: str | None = None,
        sample_weight: str | None = None,
        groups: Sequence[str] = (),
        random_state: Any = 0,
    ) -> Self:
        """Judge predictions in a CSV file with a header.

        One column holds the label; every other column, but those named below, holds the
        probabilities of the class of its name. Labels are compared with these names as text.
        ``python -m skcalib report predictions.csv -o report.html`` does this and :meth:`save`.

        Parameters
        ----------
        path : str or path
            The file, in UTF-8.
        label : str, default="label"
            Name of the column of labels.
        pos_label : str, default=None
            Name of the column of the positive class of two, other columns left out. None takes
            all; a single column is the positive class.
        sample_weight : str, default=None
            Name of the column of weights.
        groups : sequence of str, default=()
            Names of columns of groups.
        random_state : int, RandomState instance or None, default=0
            Seed of resamples and folds.

        Returns
        -------
        report : CalibrationReport
            The report.

        Raises
        ------
        ValueError
            If a column is missing, or holds what is no number; and as :meth:`from_predictions`.
        """
        table = read_predictions(
            Path(path),
            label=label,
            pos_label=pos_label,
            sample_weight=sample_weight,
            groups=groups,
        )
        return cls.from_predictions(**table, random_state=random_state)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report as one HTML file, without scripts and without links to elsewhere.

        Parameters
        ----------
        path : str or path
            Where to; a file that is there is replaced. The name ends in ".html" or ".htm" or, for
            Markdown, in ".md".

        Raises
        ------
        ValueError
            If the name has another ending.
        """
        ending = Path(path).suffix.lower()
        if ending not in (".html", ".htm", ".md"):
            raise ValueError(f"path must end in .html, .htm or .md, got {str(path)!r}.")
        text = self.to_markdown() if ending == ".md" else as_html(self.results_, page=True)
        with write_atomically(path) as file:
            file.write(text.encode())

    def to_markdown(self) -> str:
        """Return the report as Markdown, for a pull request: the tables without the pictures.

        Returns
        -------
        markdown : str
            The text; labels are shown letter by letter.
        """
        return as_markdown(self.results_)

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.results_['verdict']['sentence']}"

    def _repr_html_(self) -> str:
        return as_html(self.results_, page=False)


def _worth_showing(X: Any) -> Any:
    """Return X where a reader recognizes a sample in it: texts, images, named columns."""
    if hasattr(X, "columns"):
        return X
    if issparse(X):
        return None
    first = X[0] if hasattr(X, "__len__") and len(X) else None
    if isinstance(first, str) or (hasattr(X, "ndim") and X.ndim in (3, 4)):
        return X
    return None
