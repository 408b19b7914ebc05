"""The report of a classifier."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from ..metrics import CalibrationAccumulator
from ..utils.checking._arrays import calling
from ..utils.checking._guard import told
from ..utils.checking._labels import shown
from ..utils.checking._validation import check_has
from ..utils.computing._files import write_atomically
from ..utils.meta._progress import telling
from ..utils.meta._warnings import collecting, warn
from . import (
    _compare,
    _first,
    _method,
    _parts,
    _repair,
    _samples,
    _silence,
    _trust,
    _verdict,
    _wrong_labels,
)
from ._data import ReportData, check_sums, plain, read_data
from ._document import Document
from ._limits import TOLERANCE
from ._read import read_predictions
from ._render import as_html, as_markdown


class CalibrationReport:
    """What to know about the confidence of a classifier, on one page.

    Use :meth:`from_estimator`, :meth:`from_predictions` or :meth:`from_csv` to create one, and
    :meth:`from_accumulator` of more samples than fit in memory. The page begins with a verdict and
    answers questions. Can the confidence be trusted? When should the model decline? Which classes,
    groups and samples are at fault? What would help? A notebook shows it by itself.

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
    >>> report  # doctest: +ELLIPSIS
    CalibrationReport: Its probabilities hide most of what it knows: calibrating brings ...
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
        finder: Any = None,
        images: Any = None,
        by: Any = None,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
        tolerance: float = TOLERANCE,
        title: str | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> Self:
        """Judge a fitted classifier on samples that are new to it.

        Parameters
        ----------
        estimator : object
            Fitted classifier with `predict_proba` and `classes_`.
        X : array-like of shape (n_samples, n_features), or whatever the classifier takes
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Their labels, or the shares of people who chose each class, in [0, 1], rows that sum
            to 1: then an answer is wrong by the share who disagree, and the hardest samples are
            named by the class that most chose. Labels are not judged, and `finder` must be None.
        scorer : difficulty scorer or Pipeline that ends in one, default=None
            Fitted; says which samples are the hardest. None takes the log-loss of the classifier.
        finder : LabelIssueFinder, default=None
            Fitted to these samples and labels, with checked labels if there are any: the page
            also says how far the probabilities are off after allowing for wrong labels.
        images : sequence of n_samples images, texts or rows of a table, default=None
            What is shown of a sample. None shows X where it holds texts, images or named columns.
        by : array-like of shape (n_samples,), dict or DataFrame of such, default=None
            Few groups that are judged as well: strings, numbers, categories, intervals. Missing
            values are a group.
        groups : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Which samples belong together, such as those of a patient, by names of any kind.
            Intervals, tests, thresholds and calibrators allow for it.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; a weight of k counts as k samples. The tests take a sample
            for one outcome whatever its weight, and the counts of samples ignore weights.
        tolerance : float, default=0.05
            Largest error that does not matter, in (0, 1), of everybody; twice as much of a
            group or class. What is off by more than chance and surely by less than this is told
            apart from what may be off enough to matter. With two classes, at most a quarter of
            what is said of the rarer one.
        title : str, default=None
            Heading of the page. None takes the class of the estimator.
        random_state : int, RandomState instance or None, default=0
            Seed of resamples and folds.
        verbose : int, default=0
            Whether to print every part of the page and its seconds; 0 prints nothing.

        Returns
        -------
        report : CalibrationReport
            The report.

        Raises
        ------
        TypeError
            If `estimator` has no `predict_proba`.
        """
        what = "a fitted classifier"
        check_has(estimator, "predict_proba", "classes_", name="estimator", what=what)
        data = read_data(
            y,
            estimator.predict_proba(X),
            labels=estimator.classes_,
            remedy="If so, the labels are not those that the classifier was fitted on.",
            by=by,
            groups=groups,
            sample_weight=sample_weight,
            random_state=random_state,
            tolerance=tolerance,
            title=title,
            model=type(estimator).__name__,
            features=X,
            shown=images if images is not None else _worth_showing(X),
            scorer=scorer,
            finder=finder,
        )
        return cls(_gather(data, verbose))

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        finder: Any = None,
        images: Any = None,
        by: Any = None,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
        tolerance: float = TOLERANCE,
        title: str | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> Self:
        """Judge probabilities of samples that are new to the model that gave them.

        Parameters
        ----------
        y_true, y_proba, labels, pos_label : of :func:`~skcalib.metrics.expected_calibration_error`
        finder, images, by, groups, sample_weight, tolerance : of :meth:`from_estimator`
        title, random_state, verbose : of :meth:`from_estimator`

        Returns
        -------
        report : CalibrationReport
            The report.
        """
        given = {"labels": labels, "pos_label": pos_label, "by": by, "groups": groups}
        given |= {"title": title, "tolerance": tolerance, "finder": finder}
        given |= {"sample_weight": sample_weight, "random_state": random_state, "shown": images}
        return cls(_gather(read_data(y_true, y_proba, **given), verbose))

    @classmethod
    def from_accumulator(
        cls,
        accumulator: CalibrationAccumulator,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        images: Any = None,
        by: Any = None,
        tolerance: float = TOLERANCE,
        title: str | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> Self:
        """Judge a model by the sums over all samples, and by a random part of them.

        For samples that do not fit in memory, or that lie on several machines. The calibration
        error, its interval and what is said of everybody on average come from the sums; curves,
        thresholds, classes, groups and calibrators from the part, 50 000 samples for instance.

        Parameters
        ----------
        accumulator : CalibrationAccumulator
            The sums over all samples, in the 15 bins of the default.
        y_true : array-like of shape (n_samples,)
            Labels of a part of the samples, drawn at random.
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            Their probabilities, in the form in which the accumulator got them. Of two classes the
            page is about the probability of the positive one: give that one to both.
        images, by, tolerance, title, random_state, verbose : of :meth:`from_estimator`
            `images` and `by` are those of the part.

        Returns
        -------
        report : CalibrationReport
            The report. Weights that the accumulator got count as numbers of samples.

        Raises
        ------
        ValueError
            If the accumulator has no samples, other bins or another norm, or if classes or columns
            of the part are not its own.

        Warns
        -----
        SkcalibWarning
            If the part cannot be a random one: its mean confidence or accuracy is more than 5
            standard errors away from that of all samples.

        Examples
        --------
        >>> from skcalib.datasets import make_predictions
        >>> from skcalib.metrics import CalibrationAccumulator
        >>> from skcalib.report import CalibrationReport
        >>> y, proba, _ = make_predictions(20_000, temperature=1.6, random_state=0)
        >>> total = CalibrationAccumulator()
        >>> for start in range(0, 20_000, 5000):
        ...     total = total.update(y[start:start + 5000], proba[start:start + 5000])
        >>> CalibrationReport.from_accumulator(total, y[::20], proba[::20])
        CalibrationReport: It is overconfident: it says 82 % and is right 74 % of the time.
        """
        check_sums(accumulator, y_true, y_proba)
        data = read_data(
            y_true,
            y_proba,
            labels=accumulator.classes_,
            by=by,
            shown=images,
            tolerance=tolerance,
            title=title,
            random_state=random_state,
            total=accumulator,
            summed="positive" if np.ndim(y_proba) == 1 else "answers",
        )
        return cls(_gather(data, verbose))

    @classmethod
    def from_csv(
        cls,
        path: str | PathLike[str],
        *,
        label: str | None = None,
        classes: Sequence[str] | Mapping[str, str] | None = None,
        pos_label: str | None = None,
        sample_weight: str | None = None,
        by: Sequence[str] = (),
        groups: str | None = None,
        tolerance: float = TOLERANCE,
        title: str | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> Self:
        """Judge predictions in a file with a header, as pandas or a spreadsheet writes it.

        A parquet file will do as well.

        One column holds the label, and one column per class its probabilities; other columns are
        not used. ``python -m skcalib report predictions.csv -o report.html`` does this and
        :meth:`save`. The separator (comma, semicolon, tab or bar), the decimal sign and the
        encoding are found, and gzip is unpacked. Parquet, which needs ``pyarrow``, is known by
        its first bytes, and its rows are counted from 1.

        Parameters
        ----------
        path : str or path
            The file.
        label : str, default=None
            Name of the column of labels. None takes the first of "label", "y_true", "y",
            "target" and the like that is there.
        classes : sequence of str or dict of str to str, default=None
            Names of the columns of probabilities; labels 0, 1, ... are meant in this order where
            the columns are called differently. A dict, or items such as "prob_0=bus", say which
            column is of which class. None takes those that are called like the labels
            (or all of them alike: "p_cat", "p_dog"), with others that complete their rows to 1,
            or, of two classes, the only column of probabilities.
        pos_label : str, default=None
            The positive one of two classes, if there is a single column. None takes the class
            that the column is called after ("prob_0", "P(no)", "not_spam"), or the second of 0
            and 1, no and yes.
        sample_weight : str, default=None
            Name of the column of weights.
        by : sequence of str, default=()
            Names of columns of groups.
        groups : str, default=None
            Name of the column that says which samples belong together.
        tolerance, title, random_state, verbose : of :meth:`from_estimator`

        Returns
        -------
        report : CalibrationReport
            The report.

        Raises
        ------
        ValueError
            If a column is missing, cannot be told apart from others, or holds what is not a
            number; and as :meth:`from_predictions`.

        Warns
        -----
        SkcalibWarning
            If lines of the file stand within quoted cells, as behind a quotation mark that is
            never closed.
        """
        path = Path(path)
        with collecting() as notes, telling("CalibrationReport", verbose)(f"reading {path.name}"):
            table = read_predictions(path, label, classes, pos_label, sample_weight, by, groups)
        for note in notes:
            warn(note)
        data = read_data(
            **table,
            remedy="If so, name the columns in the order of the classes: classes, --classes.",
            tolerance=tolerance,
            title=title or path.stem,
            random_state=random_state,
        )
        results = _gather(data, verbose)
        results["warnings"][:0] = notes
        return cls(results)

    @classmethod
    def compare(
        cls,
        y_probas: Mapping[str, ArrayLike],
        y_true: Any,
        *,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
        title: str | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> Self:
        """Compare models on the same samples, or one model in two months.

        Parameters
        ----------
        y_probas : dict of str -> array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities by the name of the model or of the month, two or more. The first is what
            the others are compared with.
        y_true : array-like of shape (n_samples,), or dict of str -> array-like
            True labels of the samples that all models were given: differences are taken sample
            by sample. A dict of labels by the same names: the samples are different ones.
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, if all models have the same ones.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, if all models have the same ones.
        labels, pos_label, title, random_state, verbose : of :meth:`from_predictions`

        Returns
        -------
        report : CalibrationReport
            The comparison: `results_["comparison"]` holds the measures of every model and the
            differences to the first, with intervals; smaller = better, except for the accuracy.

        Raises
        ------
        ValueError
            If there are fewer than two models, if the names of `y_true` are others, and as
            :meth:`from_predictions`.

        Examples
        --------
        >>> from skcalib.datasets import make_predictions
        >>> from skcalib.report import CalibrationReport
        >>> y, sober, _ = make_predictions(1000, random_state=0)
        >>> _, bold, _ = make_predictions(1000, temperature=2.0, random_state=0)
        >>> CalibrationReport.compare({"sober": sober, "bold": bold}, y)
        CalibrationReport: bold is worse calibrated than sober.
        """
        paired = not isinstance(y_true, Mapping)
        if not isinstance(y_probas, Mapping) or len(y_probas) < 2:
            got = shown(y_probas) if isinstance(y_probas, Mapping) else type(y_probas).__name__
            raise ValueError(f"y_probas must be a dict of two or more models, got {got}.")
        if not paired and list(y_true) != list(y_probas):
            raise ValueError(
                f"y_true must have the names of y_probas, {shown(y_probas)}, got {shown(y_true)}."
            )
        given = {"labels": labels, "pos_label": pos_label, "sample_weight": sample_weight}
        given |= {"random_state": random_state, "groups": groups}
        models = {
            str(name): read_data(y_true if paired else y_true[name], y_proba, **given)
            for name, y_proba in y_probas.items()
        }
        for name, data in models.items():
            if data.doubt is not None:
                warn(f"{name}: {data.doubt}")
        first = next(iter(models.values()))
        found: dict[str, Any] = {
            "title": title,
            "comparison": _compare.results(models, paired=paired, verbose=verbose),
            "overview": _trust.overview(first),
            "method": _method.method(first),
        }
        words = {"headline": _compare.headline(found), "explanation": _compare.explanation(found)}
        found["verdict"] = {"kind": "comparison", **words}
        return cls(dict(plain(found)))

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
        text = self.to_markdown() if ending == ".md" else self._as_html(page=True)
        with write_atomically(path) as file:
            file.write(text.encode())

    def to_markdown(self) -> str:
        """Return the text and tables as Markdown, without the pictures: for a pull request."""
        return as_markdown(self._document())

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.results_['verdict']['headline']}"

    def _repr_html_(self) -> str:
        return self._as_html(page=False)

    def _as_html(self, *, page: bool) -> str:
        return as_html(self._document(), repr(self.results_), page=page)

    def _document(self) -> Document:
        written = _compare if "comparison" in self.results_ else _first
        return written.document(self.results_)


# The checks of scikit-learn change the warnings of the process, for a moment each: two reports
# whose moments overlap would change them for good.
_one_at_a_time = threading.RLock()


def _gather(data: ReportData, verbose: int) -> dict[str, Any]:
    """Return the results of all questions, as plain numbers, strings, lists and dicts."""
    step = telling("CalibrationReport", verbose)
    # The columns have been looked at, and what the parts warn of belongs to the page.
    with _one_at_a_time, collecting() as messages, told():
        with step("overview"):
            results: dict[str, Any] = {"overview": _trust.overview(data)}
        with step("wrong labels"):
            wrong_labels = _wrong_labels.results(data.sample)
        with step("calibration errors and curves"):
            trust = _trust.results(data)
        with step("calibrators"):
            calibrators, calibrated = _repair.results(data.sample)
        with step("classes and groups"):
            results["verdict"] = _verdict.results(data, trust, calibrators)
            results |= {"calibration": trust}
        with step("thresholds"):
            results["selective"] = _silence.results(data)
        with step("what to look at"):
            results |= {
                "classes": _parts.results(data),
                "groups": list(data.by or {}),
                "hardest": _samples.hardest(data),
                "issues": _samples.issues(data.sample),
                "wrong_labels": wrong_labels,
                "calibrators": calibrators,
            }
        with step("after calibration"):
            results["after_calibration"] = None if calibrated is None else _after(calibrated)
        results["method"] = _method.method(data)
    notes = _method.notes(data)
    # Each fold may have said it.
    told_once = dict.fromkeys(messages)
    results["warnings"] = notes + [f"Warned of on the way: {message}" for message in told_once]
    if data.doubt is not None:
        results["verdict"] |= {
            "kind": "columns",
            "headline": "The labels do not fit the probabilities: look at this first.",
            "explanation": data.doubt,
        }
    return dict(plain(results))


def _after(calibrated: ReportData) -> dict[str, Any]:
    """Return what is advised once the probabilities are calibrated, judged on samples left out."""
    return {"tested": _verdict.judge(calibrated), "selective": _silence.results(calibrated)}


def _worth_showing(X: Any) -> Any:
    """Return X where a reader recognizes a sample in it: texts, images, named columns."""
    if hasattr(X, "columns") or getattr(X, "ndim", 2) in (3, 4):
        return X
    is_list = hasattr(X, "__len__") and not issparse(X) and len(X) > 0
    return X if is_list and isinstance(X[0], str) else None
