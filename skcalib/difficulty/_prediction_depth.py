"""Prediction depth as an estimator: probes on the layers of a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from math import ceil
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..utils._arrays import check_has, check_mask
from ..utils._compat import HasMethods, Interval, StrOptions, _check_feature_names_in, _fit_context
from ..utils._estimators import VersionMixin
from ..utils._output import warn
from ._base import DifficultyMixin, RequiresLabels
from ._neighbors import NeighborSearch, NeighborVote, drop
from ._networks import ActivationReader, check_queries, check_samples, train_network, unfreeze
from .training_dynamics import prediction_depth

# Number of training samples of which `fit` checks whether they have a depth.
MAX_CHECKED = 1000


class PredictionDepthScorer(
    RequiresLabels, DifficultyMixin, TransformerMixin, VersionMixin, BaseEstimator
):
    """Difficulty as the layer from which probes agree with the network's prediction.

    Probes stand at the input, at layers of the network and at its softmax output. A probe is a
    vote of the k nearest training samples there, or a classifier of the activations. The
    prediction depth of a sample is the first probe from which on all agree with the network [1]_.
    **Larger = harder**; NaN if the last probe disagrees.

    Distances are exact and do not depend on the batch size. Activations of the training samples
    are kept, 4 bytes for each feature; those of samples to score are computed in blocks.

    Parameters
    ----------
    estimator : MLPClassifier, skorch net, torch.nn.Module or Pipeline, default=None
        The network. None means an ``MLPClassifier`` with two layers of 32. `fit` trains a clone of
        it, unless it is a :class:`~sklearn.frozen.FrozenEstimator` of a fitted model. A plain
        ``torch.nn.Module`` has no `fit`: pass a trained one that returns logits. The last step of
        a Pipeline is the network; the others come before its input.
    layers : "auto" or list of str, default="auto"
        Where the probes are, besides the input and the softmax output, which always carry one. For
        torch, names as in :class:`~skcalib.embeddings.LayerEmbedder`; "auto" is after every linear
        and convolution operation and after the sum of every residual block, both before the
        activation function, but not after the operation that gives the logits. For an
        ``MLPClassifier``, names from ``"linear_0"`` on, and "auto" is all but the last of them.
    n_neighbors : int, default=30
        Number of training samples that vote in a probe, smaller than every class. Of samples as
        far away as the last voter, any may vote. If votes tie, the smallest label wins.
    probe : {"neighbors", "logistic"} or classifier, default="neighbors"
        What predicts in a layer: the vote of the neighbors; "logistic", a logistic regression on
        standardized activations (a linear probe, [1]_, Appendix E, which separates the training
        samples from the first layers on); or a clone of a classifier of your own. Parameters of
        neighbors do not matter to the two others.
    metric : str or callable, default="euclidean"
        Distance of the probes. "cosine" too is exact and fast; any other of
        :class:`~sklearn.neighbors.NearestNeighbors` needs ``algorithm="brute"``.
    exclude_self : bool, default=False
        Whether to keep a training sample from voting about itself. A scored sample is taken for
        the training sample at distance 0 in the input (in float32); among duplicates, for one
        with the same label, where `y` is given. If more than `n_neighbors` + 1 training samples
        differ only in their labels, one with another label may be left out.
    algorithm : {"auto", "faiss", "brute"}, default="auto"
        What searches for neighbors; the neighbors are the same. "brute" is scikit-learn. "auto"
        takes faiss where it is installed and faster: "euclidean" or "cosine", more than 32
        features.
    n_jobs : int, default=None
        Jobs of scikit-learn's search.
    agree_with : {"prediction", "label"}, default="prediction"
        What the probes have to agree with: the prediction of the network, or the label `y` if
        `difficulty` gets one. To rank wrong labels of training samples, take "label" with
        ``undefined="hardest"`` and ``exclude_self=True``: the last probe disagrees with many of
        them.
    undefined : {"nan", "hardest"}, default="nan"
        The depth where the last probe disagrees. "hardest" is ``len(layer_names_)``, one more
        than the largest depth, for consumers that take no NaN, such as
        :class:`DifficultyAwareClassifier` or a following step of a Pipeline.
    pooling : "mean" or callable, default=None
        How to reduce the axes of space or time of activations; None keeps every feature. See
        :class:`skcalib.embeddings.LayerEmbedder`.
    n_components : int, default=None
        Size to which a wider layer is reduced by a sparse random projection, which keeps distances
        up to a relative error of the order of ``sqrt(log(n_samples) / n_components)``. None keeps
        every feature, and with it exact distances.
    batch_size : int, default=256
        Number of samples that a torch module gets at a time.
    random_state : int, RandomState instance or None, default=None
        Seeds the default network and the random projections. An `estimator` has its own.

    Attributes
    ----------
    estimator_ : estimator or torch.nn.Module
        The trained network.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    layer_names_ : list of str
        The probes in the order of the layers, from ``"input"`` to ``"softmax"``.
    probes_ : list
        The fitted probe of every layer; of a classifier, with the classes as positions in
        `classes_`.
    n_features_in_, feature_names_in_ : int and ndarray of str
        Number of features and, where the input has them, their names.

    See Also
    --------
    skcalib.difficulty.training_dynamics.prediction_depth : The depth from given predictions.
    skcalib.plots.ProbeAccuracyDisplay : Accuracy of the probes.

    Notes
    -----
    Activations of a torch network on a GPU stay there, together with the input, and the probes
    search them there, whatever `algorithm` says: see :ref:`tensors`. They are moved to the host
    and searched there if those of the training samples take more than half of the free memory of
    the GPU, and for another `metric` than the two fast ones.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Secs. 2.1 and 4, Appendix A.5. Calls: :ref:`paper-depth`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neural_network import MLPClassifier
    >>> from skcalib.difficulty import PredictionDepthScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> net = MLPClassifier((16, 16), solver="lbfgs", max_iter=1000, random_state=0)
    >>> scorer = PredictionDepthScorer(net, n_neighbors=10).fit(X, y)
    >>> scorer.layer_names_
    ['input', 'linear_0', 'linear_1', 'softmax']
    >>> scorer.difficulty(X[:3])
    array([0., 0., 0.])
    >>> scorer.probe_score(X, y).shape
    (4,)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any] | str]] = {
        "estimator": "no_validation",
        "layers": [StrOptions({"auto"}), "array-like"],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "probe": [StrOptions({"neighbors", "logistic"}), HasMethods(["fit", "predict"])],
        "metric": [str, callable],
        "exclude_self": ["boolean"],
        "algorithm": [StrOptions({"auto", "faiss", "brute"})],
        "n_jobs": [Integral, None],
        "agree_with": [StrOptions({"prediction", "label"})],
        "undefined": [StrOptions({"nan", "hardest"})],
        "pooling": [StrOptions({"mean"}), callable, None],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        layers: str | Sequence[str] = "auto",
        n_neighbors: int = 30,
        probe: Any = "neighbors",
        metric: str | Callable = "euclidean",
        exclude_self: bool = False,
        algorithm: str = "auto",
        n_jobs: int | None = None,
        agree_with: str = "prediction",
        undefined: str = "nan",
        pooling: str | Callable | None = None,
        n_components: int | None = None,
        batch_size: int = 256,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.layers = layers
        self.n_neighbors = n_neighbors
        self.probe = probe
        self.metric = metric
        self.exclude_self = exclude_self
        self.algorithm = algorithm
        self.n_jobs = n_jobs
        self.agree_with = agree_with
        self.undefined = undefined
        self.pooling = pooling
        self.n_components = n_components
        self.batch_size = batch_size
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train the network, unless it is frozen, and fit the probes to its activations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Training samples: of any number of axes if the network is a torch module.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Passed to the training of the network. The probes do not use weights.

        Returns
        -------
        self : PredictionDepthScorer
            The fitted scorer.

        Warns
        -----
        SkcalibWarning
            If most training samples, or most of 1000 of them, have no depth.
        """
        is_undefined = self._fit_probes(X, y, sample_weight)
        if is_undefined.mean() > 0.5:
            sizes = f", with classes larger than n_neighbors={self.n_neighbors}"
            warn(
                f"The depth is undefined for {is_undefined.sum()} of {len(is_undefined)} training "
                "samples, where the last probe disagrees with the network: is it trained"
                f"{sizes if self._votes() else ''}?"
            )
        return self

    def difficulty(self, X: Any, y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Prediction depth of every sample; larger = harder.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        y : array-like of shape (n_samples,), default=None
            Labels. With ``agree_with="label"`` they are what the probes have to agree with; with
            ``exclude_self=True`` they distinguish duplicates. Not used otherwise.

        Returns
        -------
        depth : ndarray of shape (n_samples,)
            From 0 to ``len(layer_names_) - 1``; where the last probe disagrees, NaN, or as
            `undefined` says.
        """
        return self._depth(*self._answers(X, y), y)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Return the label-free `difficulty` as a column.

        Parameters
        ----------
        X : array-like of shape (n_samples, ...)
            Samples.

        Returns
        -------
        depth : ndarray of shape (n_samples, 1)
            Prediction depth; larger means harder.
        """
        return self.difficulty(X)[:, np.newaxis]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Return the name of the column of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X, only compared with those of `fit`.

        Returns
        -------
        names : ndarray of str objects
            ``["prediction_depth"]``.
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        return np.array(["prediction_depth"], dtype=object)

    def probe_predict(self, X: Any, y: ArrayLike | None = None) -> NDArray:
        """Predict the label by every probe.

        Parameters
        ----------
        X, y : of :meth:`difficulty`

        Returns
        -------
        labels : ndarray of shape (n_samples, n_layers)
            In the order of `layer_names_`.
        """
        return self._answers(X, y)[0]

    def probe_predict_proba(self, X: Any, y: ArrayLike | None = None) -> NDArray[np.float64]:
        """Class probabilities of every probe: fractions of the votes, or those of a classifier.

        Parameters
        ----------
        X, y : of :meth:`difficulty`

        Returns
        -------
        proba : ndarray of shape (n_samples, n_layers, n_classes)
            In the order of `layer_names_` and `classes_`.
        """
        return self._ask(X, y, "proba")[0]

    def probe_score(self, X: Any, y: ArrayLike) -> NDArray[np.float64]:
        """Accuracy of every probe: the inference learning curve.

        Parameters
        ----------
        X, y : of :meth:`difficulty`

        Returns
        -------
        accuracy : ndarray of shape (n_layers,)
            In the order of `layer_names_`.
        """
        return (self.probe_predict(X, y) == np.asarray(y)[:, np.newaxis]).mean(axis=0)

    def middle_probe_predict(
        self, X: Any, where: ArrayLike | None = None, *, layer: str | None = None
    ) -> NDArray:
        """Predict by a probe in the middle of the network instead of by the network.

        For samples that are ambiguous without their label, the paper finds these probes to be
        correct more often than the network. On others the network is correct more often.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Samples.
        where : array-like of bool of shape (n_samples,), default=None
            The samples to predict by the probe; the network predicts the others. None: all.
        layer : str, default=None
            The probe, from `layer_names_`; None means number ``n_layers // 2``.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Predicted labels.
        """
        predictions, final = self._answers(X, None)
        if layer is not None and layer not in self.layer_names_:
            raise ValueError(f"layer must be one of {self.layer_names_}, got {layer!r}.")
        number = len(self.layer_names_) // 2 if layer is None else self.layer_names_.index(layer)
        if where is None:
            return predictions[:, number]
        by_probe = check_mask(where, final.shape, "where")
        return np.where(by_probe, predictions[:, number], final)

    # Separate from `fit`, since a study of many networks needs no warning about each.
    def _fit_probes(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> NDArray:
        """Fit; return for some of the training samples whether their depth is undefined."""
        random_state = check_random_state(self.random_state)
        X, labels = check_samples(self, unfreeze(self.estimator), X, y)
        self.classes_, y_encoded = np.unique(labels, return_inverse=True)
        votes = self._votes()
        if self.exclude_self and not votes:
            raise ValueError(
                "exclude_self must be False unless probe='neighbors': a classifier cannot leave "
                f"out a sample that it was fitted to, got probe={self.probe!r}."
            )
        if votes and self.n_neighbors + self.exclude_self > len(labels):
            limit = "n_samples - 1" if self.exclude_self else "n_samples"
            raise ValueError(
                f"n_neighbors must be at most {limit}, got {self.n_neighbors} with "
                f"n_samples={len(labels)}."
            )
        search = NeighborSearch(
            self.n_neighbors,
            metric=self.metric,
            algorithm=self.algorithm,
            n_jobs=self.n_jobs,
            name="Activations",
        )
        self.estimator_ = train_network(self.estimator, X, labels, sample_weight, random_state)
        self._reader = ActivationReader(
            unfreeze(self.estimator_),
            X,
            self.classes_,
            # Other metrics are searched by scikit-learn, which needs arrays, as classifiers do.
            as_tensors=votes and self.metric in ("euclidean", "cosine"),
            layers=self.layers,
            pooling=self.pooling,
            batch_size=self.batch_size,
            n_components=self.n_components,
            random_state=random_state,
        )
        self.layer_names_ = self._reader.names
        layers, final = self._reader.read_all(X)
        # Positions make a copy: a slice would keep the whole layer in memory.
        checked = np.arange(0, len(final), ceil(len(final) / MAX_CHECKED))
        last_layer = layers[-1][checked]
        self.probes_: list[Any] = []
        while layers:  # emptied on the way: large activations are not kept twice
            layer = layers.pop(0)
            if votes:
                self.probes_.append(NeighborVote(copy(search)).fit(layer, y_encoded))
            else:
                self.probes_.append(self._classifier().fit(layer, y_encoded))
        return self.classes_[self.probes_[-1].predict(last_layer)] != final[checked]

    def _votes(self) -> bool:
        """Return whether the probes are votes of neighbors."""
        return isinstance(self.probe, str) and self.probe == "neighbors"

    def _classifier(self) -> Any:
        """Return a new classifier that is a probe."""
        if isinstance(self.probe, str):
            return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        return clone(self.probe)

    def _depth(
        self, predictions: NDArray, final: NDArray, y: ArrayLike | None
    ) -> NDArray[np.float64]:
        """Return the depth (n,) of predictions of the probes (n, L) and the network (n,)."""
        if y is not None and self.agree_with == "label":
            final = np.asarray(y)
        depth = prediction_depth(predictions, final)
        return depth if self.undefined == "nan" else np.nan_to_num(depth, nan=predictions.shape[1])

    def _answers(self, X: Any, y: ArrayLike | None) -> tuple[NDArray, NDArray]:
        """Return the labels predicted by the probes (n, L) and by the network (n,)."""
        encoded, final = self._ask(X, y, "winner")
        return self.classes_[encoded], final

    def _ask(self, X: Any, y: ArrayLike | None, wanted: str) -> tuple[NDArray, NDArray]:
        """Return what the probes predict (n, L, ...), and the labels by the network (n,).

        Wanted is the "winner", a position in `classes_`, or "proba", one number for each class.
        """
        X, y_encoded = check_queries(self, unfreeze(self.estimator), X, y)
        of_layers = self._of_votes if self._votes() else self._of_classifiers
        found, final = [], []
        for block, (layers, answers) in self._reader.read(X):
            labels = None if y_encoded is None else y_encoded[block]
            found.append(np.stack(of_layers(layers, labels, wanted), axis=1))
            final.append(answers)
        return np.concatenate(found), np.concatenate(final)

    def _of_votes(
        self, layers: list[Any], y_encoded: NDArray | None, wanted: str
    ) -> list[NDArray]:
        """Return the results of the votes of neighbors for a block, layer by layer."""
        found: list[NDArray] = []
        itself = None
        for probe, layer in zip(self.probes_, layers):
            neighbors = probe.search.kneighbors(layer, one_more=self.exclude_self)
            if self.exclude_self:
                if itself is None:
                    # In the input, the first layer: later ones may map many samples to one point.
                    itself = probe.find_self(layer, neighbors, y_encoded)
                neighbors = drop(neighbors, itself)
            found.append(getattr(probe, wanted)(neighbors))
        return found

    def _of_classifiers(
        self, layers: list[Any], y_encoded: NDArray | None, wanted: str
    ) -> list[NDArray]:
        """Return the predictions of classifiers for a block, layer by layer."""
        if wanted == "winner":
            return [probe.predict(layer) for probe, layer in zip(self.probes_, layers)]
        found = []
        for probe, layer in zip(self.probes_, layers):
            check_has(probe, "predict_proba", name="probe", what="a classifier with probabilities")
            proba = np.zeros((len(layer), len(self.classes_)))
            proba[:, probe.classes_] = probe.predict_proba(layer)
            found.append(proba)
        return found
