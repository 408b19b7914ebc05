"""The report of a classifier."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import issparse

from ..metrics import CalibrationAccumulator
from ..utils._arrays import check_has
from ..utils._compat import print_elapsed
from ..utils._labels import format_labels
from ..utils._output import collecting, rename_argument, warn, write_atomically
from . import _compare, _costs, _recommendation, _samples, _sections, _summary, _tests
from ._constants import TOLERANCE
from ._data import ARE_PREDICTIONS, OF_FILES, REMEDY, ReportData, as_plain, check_sums, read_data
from ._document import Document, as_html, as_markdown
from ._read import read_predictions


class CalibrationReport:
    """A one-page report on the confidence of a classifier.

    The page begins with a summary: are the probabilities calibrated, overall and for every class
    and group? Below it says when the model should decline to answer, which classes, groups and
    samples cause errors, and whether a calibrator would help. A notebook shows the page by itself;
    :meth:`save` writes it as HTML or Markdown, :meth:`to_html` returns it as text.

    Create it by :meth:`from_estimator`, :meth:`from_predictions` or :meth:`from_csv`; by
    :meth:`from_accumulator` if the samples do not fit in memory; by :meth:`compare` for several
    models. The samples must be new to the classifier: training samples make every result look too
    good.

    Parameters
    ----------
    results : dict
        The numbers of the page, as in `results_`.

    Attributes
    ----------
    results_ : dict
        Every number of the page, by section: numbers, strings, lists and dicts that ``json`` can
        write (NaN for undefined numbers).

    See Also
    --------
    skcalib.metrics.calibration_error_interval : Only the interval of the calibration error.
    skcalib.plots.ReliabilityDisplay : Only the reliability diagram.

    Notes
    -----
    For two classes, pass both columns or only the probability of the positive class: the report is
    the same. It says for every number whether it is about the predicted class or about the
    positive (second) class.

    `save`, `to_html` and notebooks need ``jinja2`` and ``matplotlib``, which the extra
    ``[report]`` brings.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.report import CalibrationReport
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = GaussianNB().fit(X[::2], y[::2])
    >>> report = CalibrationReport.from_estimator(model, X[1::2], y[1::2])
    >>> report  # doctest: +ELLIPSIS
    CalibrationReport: Calibration takes away most of the log-loss: from ...
    >>> round(report.results_["overview"]["accuracy"]["value"], 3)
    0.93
    """

    def __init__(self, results: dict[str, Any]) -> None:
        self.results_ = results

    @classmethod
    @rename_argument("y_true", "y")
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
        costs: ArrayLike | None = None,
        act_above: float | None = None,
        tolerance: float = TOLERANCE,
        title: str | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> Self:
        """Create the report of a fitted classifier on samples that are new to it.

        Parameters
        ----------
        estimator : object
            Fitted classifier with `predict_proba` and `classes_`.
        X : array-like of shape (n_samples, n_features), or whatever the classifier takes
            Samples.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Their labels; or soft labels, such as the fraction of people who chose each class, in
            rows that sum to 1. With soft labels, an answer is wrong by the fraction who disagree,
            the most frequent class stands for the label of the hardest samples, labels are not
            assessed, and `finder` must be None.
        scorer : difficulty scorer or Pipeline that ends in one, default=None
            Fitted scorer that finds the hardest samples. None uses the classifier's log-loss.
        finder : LabelIssueFinder, default=None
            Finder fitted to these samples and labels, better with checked labels. The page then
            also gives the calibration error after allowing for wrong labels.
        images : sequence of n_samples images, texts or rows of a table, default=None
            Pictures, texts or rows to show for samples. None shows X if it holds texts, images or
            named columns.
        by : array-like of shape (n_samples,), dict or DataFrame of such, default=None
            A few groups to report separately: strings, numbers, categories or intervals. Missing
            values are a group.
        groups : array-like of shape (n_samples,) or (n_samples, n_columns), default=None
            Which samples belong together, such as those of a patient: names or numbers.
            Intervals, tests, thresholds and calibrators account for it.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, in any unit. A sample is one outcome whatever its weight: tests
            and intervals count ``(sum w)^2 / sum w^2`` samples.
        costs : array-like of shape (n_decisions, n_classes), default=None
            Cost of every decision for every true class, as in
            :func:`~skcalib.metrics.expected_cost`, for the section "What an error costs".
        act_above : float, default=None
            Probability of the second of two classes, in (0, 1), from which on one acts on a
            sample. Recall and precision are then those of acting, and the page says what it is
            worth. None takes it from `costs` of two decisions, if there are some.
        tolerance : float, default=0.05
            Largest error that does not matter, in (0, 1); twice as large for a group or class. A
            significant error that is surely smaller is reported as small. With two classes, it is
            at most a quarter of the mean probability of the rarer class.
        title : str, default=None
            Heading of the page. None means the name of the estimator's class.
        random_state : int, RandomState instance or None, default=0
            Seed of resamples and folds.
        verbose : int, default=0
            Whether to print every step of the computation and its seconds; 0 prints nothing.

        Returns
        -------
        report : CalibrationReport
            The report.

        Raises
        ------
        TypeError
            If `estimator` has no `predict_proba`.
        ValueError
            If lengths or classes do not match, or if `tolerance` is not in (0, 1).
        """
        what = "a fitted classifier"
        check_has(estimator, "predict_proba", "classes_", name="estimator", what=what)
        data = read_data(
            y,
            estimator.predict_proba(X),
            labels=estimator.classes_,
            named=True,
            remedies={REMEDY: "the labels are not those that the classifier was fitted on"},
            by=by,
            groups=groups,
            sample_weight=sample_weight,
            random_state=random_state,
            costs=costs,
            act_above=act_above,
            tolerance=tolerance,
            title=title,
            model=type(estimator).__name__,
            features=X,
            shown=images if images is not None else _choose_shown(X),
            scorer=scorer,
            finder=finder,
        )
        return cls(_compute_results(data, verbose))

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
        of_answers: bool = False,
        finder: Any = None,
        images: Any = None,
        by: Any = None,
        groups: Any = None,
        sample_weight: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        act_above: float | None = None,
        tolerance: float = TOLERANCE,
        title: str | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> Self:
        """Create the report of predicted probabilities of samples that are new to the model.

        Parameters
        ----------
        y_true, y_proba, labels, pos_label : of :func:`~skcalib.metrics.expected_calibration_error`
        of_answers : bool, default=False
            Whether `y_true` says if an answer is right, and `y_proba`, of shape (n_samples,), is
            the confidence in the answer, as that of a language model. The page then never takes a
            low confidence for the answer "wrong".
        finder, images, by, groups, sample_weight : of :meth:`from_estimator`
        costs, act_above, tolerance : of :meth:`from_estimator`
        title, random_state, verbose : of :meth:`from_estimator`

        Returns
        -------
        report : CalibrationReport
            The report.
        """
        given = {"labels": labels, "pos_label": pos_label, "by": by, "groups": groups}
        given |= {"title": title, "tolerance": tolerance, "finder": finder}
        given |= {"of_answers": of_answers, "costs": costs, "act_above": act_above}
        given |= {"sample_weight": sample_weight, "random_state": random_state, "shown": images}
        return cls(_compute_results(read_data(y_true, y_proba, **given), verbose))

    @classmethod
    def from_accumulator(
        cls,
        accumulator: CalibrationAccumulator,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        images: Any = None,
        by: Any = None,
        sample_weight: ArrayLike | None = None,
        tolerance: float = TOLERANCE,
        title: str | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> Self:
        """Create the report from sums over all samples, and a random part of the samples.

        Use it if the samples do not fit in memory, or are on several machines. The calibration
        error, its interval and the averages over all samples come from the sums; curves,
        thresholds, classes, groups and calibrators come from the part, for example 50 000 samples.

        Parameters
        ----------
        accumulator : CalibrationAccumulator
            The sums over all samples, with its default of 15 bins.
        y_true : array-like of shape (n_samples,)
            Labels of a random part of the samples.
        y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
            Their probabilities, in the form that the accumulator got. For two classes, pass the
            probability of the positive class to both: the page is about it.
        images, by, tolerance, title, random_state, verbose : of :meth:`from_estimator`
            `images` and `by` are those of the part.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the part, if the accumulator got weights: the part must have been drawn
            whatever the weights of its samples. They may be in another unit.

        Returns
        -------
        report : CalibrationReport
            The report. If the accumulator got weights, its number of samples is the effective
            one, ``(sum w)^2 / sum w^2``.

        Raises
        ------
        ValueError
            If the accumulator has no samples, other bins or another norm, or if classes or columns
            of the part differ from those of the accumulator.

        Warns
        -----
        SkcalibWarning
            If the part cannot be random: its mean confidence or accuracy differs from that of all
            samples by more than 5 standard errors.

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
        CalibrationReport: The model is overconfident: it says 82 % and is right 74 % of the time.
        """
        check_sums(accumulator, y_true, y_proba, sample_weight)
        data = read_data(
            y_true,
            y_proba,
            labels=accumulator.classes_,
            by=by,
            sample_weight=sample_weight,
            shown=images,
            tolerance=tolerance,
            title=title,
            random_state=random_state,
            total=accumulator,
            summed="positive" if np.ndim(y_proba) == 1 else "answers",
        )
        return cls(_compute_results(data, verbose))

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
        prediction: str | None = None,
        confidence: str | None = None,
        percent: bool = False,
        costs: ArrayLike | None = None,
        act_above: float | None = None,
        tolerance: float = TOLERANCE,
        title: str | None = None,
        random_state: Any = 0,
        verbose: int = 0,
    ) -> Self:
        """Create the report of predictions in a file: CSV, JSON, parquet, feather or npz.

        The file has a header, a column of labels and a column of probabilities for each class;
        other columns are not used. The separator (comma, semicolon, tab or bar), the decimal sign
        and the encoding are detected, and gzip is unpacked. JSON holds an object for each sample,
        in an array or on lines; npz, arrays of labels and of probabilities or logits. Parquet and
        feather files need ``pyarrow``. ``python -m skcalib report predictions.csv -o report.html``
        does the same and saves the page.

        Parameters
        ----------
        path : str or path
            The file.
        label : str, default=None
            Name of the column of labels. None uses the column named "label", "y_true", "y",
            "target", "truth" or similar; where several could be meant, it has to be given.
        classes : sequence of str or dict of str to str, default=None
            Names of the columns of probabilities. A dict, or items such as "prob_0=bus", assign
            classes to columns; otherwise labels 0, 1, ... belong to the columns in this order,
            unless columns are named after the labels. None uses the columns that are named as
            exporters do: the label alone, "p_cat", "prob_cat", "proba_cat", "pred_cat",
            "prob.cat", ".pred_cat", "P(cat)", "p0"; or, for two classes, one column such as
            "p_1", "proba" or "score". Of several that fit none is taken.
        pos_label : str, default=None
            The positive class, if there is a single column of probabilities. None uses the class
            in its name ("prob_0", "P(no)"), or the second of pairs such as 0 and 1, no and yes.
        sample_weight : str, default=None
            Name of the column of weights.
        by : sequence of str, default=()
            Names of columns of groups to report separately.
        groups : str, default=None
            Name of the column that says which samples belong together.
        prediction : str, default=None
            Name of the column of answers, for a file that has the confidence in an answer instead
            of probabilities of classes, such as that of a language model. An answer is right if it
            equals the label. None: the column of labels says which answers are right, as 0 and 1,
            yes and no or correct and incorrect, if there is a `confidence`.
        confidence : str, default=None
            Name of the column of the confidence in the answer, in [0, 1]. None uses the column
            named "confidence", if there is one beside a `prediction` or a column "correct".
        percent : bool, default=False
            Whether the probabilities are percentages, from 0 to 100. Cells with a percent sign
            are read as such in any case.
        costs, act_above : of :meth:`from_estimator`
        tolerance, title, random_state, verbose : of :meth:`from_estimator`

        Returns
        -------
        report : CalibrationReport
            The report.

        Raises
        ------
        ValueError
            If a column is missing or ambiguous, if a probability is not a number in [0, 1], or if
            the file is not a table.

        Warns
        -----
        SkcalibWarning
            If an unused column seems to hold groups or models; if lines of the file are within
            quoted cells, as after a quotation mark that is never closed.
        """
        path = Path(path)
        step = print_elapsed("CalibrationReport", verbose, f"reading {path.name}")
        with collecting() as notes, step:
            table = read_predictions(
                path,
                label,
                classes,
                pos_label,
                sample_weight,
                by,
                groups,
                prediction,
                confidence,
                percent=percent,
            )
        for note in notes:
            warn(note)
        data = read_data(
            **table,
            named=True,
            remedies=OF_FILES,
            costs=costs,
            act_above=act_above,
            tolerance=tolerance,
            title=title or path.stem,
            random_state=random_state,
        )
        results = _compute_results(data, verbose)
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
        """Compare models on the same samples, or one model on different samples.

        Parameters
        ----------
        y_probas : dict of str -> array-like of shape (n_samples, n_classes) or (n_samples,)
            Probabilities of two or more models, by name. The first is the one that the others are
            compared with.
        y_true : array-like of shape (n_samples,), or dict of str -> array-like
            True labels. An array: all models predict the same samples, and differences are paired.
            A dict with the names of `y_probas`: the samples differ, such as those of two months.
        groups : array-like of shape (n_samples,), default=None
            Which samples belong together, if all models predict the same samples.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, if all models predict the same samples.
        labels, pos_label, title, random_state, verbose : of :meth:`from_predictions`

        Returns
        -------
        report : CalibrationReport
            The comparison: `results_["comparison"]` holds the measures of every model and the
            differences to the first, with intervals; smaller = better, except for the accuracy.

        Raises
        ------
        ValueError
            If there are fewer than two models, if `y_true` has other names than `y_probas`, or if
            lengths or classes do not match.

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
            got = (
                format_labels(y_probas)
                if isinstance(y_probas, Mapping)
                else type(y_probas).__name__
            )
            raise ValueError(f"y_probas must be a dict of two or more models, got {got}.")
        if not paired and list(y_true) != list(y_probas):
            raise ValueError(
                f"y_true must have the names of y_probas, {format_labels(y_probas)}, got "
                f"{format_labels(y_true)}."
            )
        given = {"labels": labels, "pos_label": pos_label, "sample_weight": sample_weight}
        given |= {"random_state": random_state, "groups": groups}
        models = {
            str(name): read_data(y_true if paired else y_true[name], y_proba, **given)
            for name, y_proba in y_probas.items()
        }
        for name, data in models.items():
            for finding in data.alignment:
                warn(f"{name}: {finding}")
        first = next(iter(models.values()))
        found: dict[str, Any] = {
            "title": title,
            "comparison": _compare.compare_models(models, paired=paired, verbose=verbose),
            "overview": _sections.compute_overview(first),
            "method": _sections.describe_method(first),
        }
        words = {
            "headline": _compare.write_headline(found),
            "explanation": _compare.write_explanation(found),
        }
        found["summary"] = {"kind": "comparison", **words}
        return cls(dict(as_plain(found)))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the report as one HTML file, without scripts and external links, or as Markdown.

        Parameters
        ----------
        path : str or path
            File to write; an existing file is replaced. The suffix must be ".html", ".htm" or, for
            Markdown, ".md".

        Raises
        ------
        ValueError
            If the suffix is another one.
        """
        ending = Path(path).suffix.lower()
        if ending not in (".html", ".htm", ".md"):
            raise ValueError(f"path must end in .html, .htm or .md, got {str(path)!r}.")
        (self.to_markdown if ending == ".md" else self.to_html)(path)

    @overload
    def to_html(self, path: None = None) -> str: ...
    @overload
    def to_html(self, path: str | PathLike[str]) -> None: ...
    def to_html(self, path: str | PathLike[str] | None = None) -> str | None:
        """Return the report as an HTML page, or write the page to a file.

        The page is complete: style and pictures are part of it, and it loads nothing from
        elsewhere.

        Parameters
        ----------
        path : str or path, default=None
            File to write, with any suffix; an existing file is replaced. None returns the page.

        Returns
        -------
        page : str or None
            The page; None if it was written to `path`.

        Raises
        ------
        ImportError
            If ``jinja2`` or ``matplotlib`` is missing: the extra ``[report]`` brings them.
        OSError
            If the file cannot be written.

        See Also
        --------
        save : Writes HTML or Markdown, as the suffix says.
        to_markdown : Text and tables without pictures.

        Examples
        --------
        >>> from skcalib.datasets import make_predictions
        >>> from skcalib.report import CalibrationReport
        >>> y, proba, _ = make_predictions(500, random_state=0)
        >>> page = CalibrationReport.from_predictions(y, proba).to_html()
        >>> page[:15]
        '<!DOCTYPE html>'
        """
        page = as_html(self._make_document(), repr(self.results_), page=True)
        if path is None:
            return page
        _write(page, path)
        return None

    @overload
    def to_markdown(self, path: None = None) -> str: ...
    @overload
    def to_markdown(self, path: str | PathLike[str]) -> None: ...
    def to_markdown(self, path: str | PathLike[str] | None = None) -> str | None:
        """Return text and tables as Markdown, or write them to a file.

        Without pictures: for the comment of a pull request, for example.

        Parameters
        ----------
        path : str or path, default=None
            File to write, with any suffix; an existing file is replaced. None returns the text.

        Returns
        -------
        text : str or None
            The whole page as Markdown; None if it was written to `path`.

        Raises
        ------
        OSError
            If the file cannot be written.

        See Also
        --------
        save : Writes HTML or Markdown, as the suffix says.
        to_html : The page with its pictures.

        Examples
        --------
        >>> from skcalib.datasets import make_predictions
        >>> from skcalib.report import CalibrationReport
        >>> y, y_proba, _ = make_predictions(300, random_state=0)
        >>> print(CalibrationReport.from_predictions(y, y_proba).to_markdown()[:20])
        # Calibration report
        """
        text = as_markdown(self._make_document())
        if path is None:
            return text
        _write(text, path)
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self.results_['summary']['headline']}"

    def _repr_html_(self) -> str:
        return as_html(self._make_document(), repr(self.results_), page=False)

    def _make_document(self) -> Document:
        written = _compare if "comparison" in self.results_ else _summary
        return written.make_document(self.results_)


def _write(text: str, path: str | PathLike[str]) -> None:
    with write_atomically(path) as file:
        file.write(text.encode())


# scikit-learn's checks change the warning filters of the process for a moment: two threads that
# overlap could leave them changed.
_one_at_a_time = threading.RLock()


def _compute_results(data: ReportData, verbose: int) -> dict[str, Any]:
    """Compute all results, as plain numbers, strings, lists and dicts."""
    data = _costs.check_acting(data)
    step = partial(print_elapsed, "CalibrationReport", verbose)
    # Collect warnings for the page.
    with _one_at_a_time, collecting() as messages, np.errstate(under="ignore"):
        with step("overview"):
            results: dict[str, Any] = {"overview": _sections.compute_overview(data)}
        with step("wrong labels"):
            wrong_labels = _sections.compute_wrong_labels(data.sample)
        with step("calibration errors and curves"):
            trust = _sections.compute_trust(data)
        with step("calibrators"):
            calibrators, calibrated = _recommendation.compare_calibrators(data.sample)
        with step("classes and groups"):
            results |= {**_tests.summarize_tests(data, trust, calibrators), "calibration": trust}
        with step("thresholds"):
            results["selective"] = _sections.compute_selective(data)
        with step("costs"):
            results["validation"] = _costs.compute_validation(data)
            results["costs"] = _costs.compute_costs(data)
        with step("what to look at"):
            results |= {
                "classes": _sections.compute_classes(data),
                "groups": list(data.by or {}),
                "hardest": _samples.find_hardest(data),
                "issues": _samples.find_issues(data.sample),
                "wrong_labels": wrong_labels,
                "calibrators": calibrators,
            }
        with step("after calibration"):
            results["after_calibration"] = (
                None if calibrated is None else _test_calibrated(calibrated)
            )
        results["method"] = _sections.describe_method(data)
    notes = _sections.list_notes(data)
    # Each once, though several folds may have warned.
    distinct = dict.fromkeys(messages)
    results["warnings"] = notes + [f"Warned of on the way: {message}" for message in distinct]
    results["alignment"] = list(data.alignment)
    if data.alignment:
        results["summary"] |= _summarize_alignment(data, results["summary"])
    return dict(as_plain(results))


def _summarize_alignment(data: ReportData, summary: Mapping[str, Any]) -> dict[str, str]:
    """Return a headline on labels that are predictions, or in another order."""
    explanation = " ".join(data.alignment)
    if data.alignment[0].startswith(ARE_PREDICTIONS):
        headline = "The labels are predictions and no true labels, or the model is never wrong."
        explanation += f" If it is never wrong: {summary['headline']}"
        return {"kind": "predictions", "headline": headline, "explanation": explanation}
    headline = "The labels do not fit the probabilities: look at this first."
    return {"kind": "alignment", "headline": headline, "explanation": explanation}


def _test_calibrated(calibrated: _recommendation.CalibratedData) -> dict[str, Any]:
    """Return tests after calibration, out-of-fold, and thresholds of one half of the samples."""
    tests = _tests.run_group_tests(calibrated.out_of_fold)
    return {
        "group_tests": [asdict(entry) for entry in tests],
        "selective": _sections.compute_selective(calibrated.half),
    }


def _choose_shown(X: Any) -> Any:
    """Return X if a reader can recognize samples in it: texts, images, named columns."""
    if hasattr(X, "columns") or getattr(X, "ndim", 2) in (3, 4):
        return X
    is_list = hasattr(X, "__len__") and not issparse(X) and len(X) > 0
    return X if is_list and isinstance(X[0], str) else None
