"""The types that a stored model is made of."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import walk_packages

# The packages of estimators that need neither torch nor matplotlib.
_ROOMS = ("difficulty", "labels", "posthoc", "selection")


def trusted_types() -> list[str]:
    """Return the types of this package that fitted estimators are made of.

    skops, and MLflow with it, load only types that are passed as trusted. Besides types of numpy
    and scikit-learn, which they trust, an estimator of skcalib needs these. What you put into it,
    such as a classifier of another library, may need more: ``skops.io.get_untrusted_types`` names
    them.
    :class:`~skcalib.labels.LabelIssueFinder` by default also needs ``"sklearn.tree._tree.Tree"``.

    Returns
    -------
    names : list of str
        Sorted names of classes with their modules: estimators, and the small classes that hold
        what they have learned. Nets are not among them:
        :meth:`skcalib.nets.CalibratedNetClassifier.save` stores their numbers alone.

    See Also
    --------
    skcalib.posthoc.PostHocCalibratedClassifier : A model that may be stored like this.

    Examples
    --------
    >>> import skcalib
    >>> names = skcalib.trusted_types()
    >>> "skcalib.posthoc._temperature.TemperatureScaling" in names
    True

    In use: ``skops.io.load("model.skops", trusted=skcalib.trusted_types())``, and
    ``mlflow.sklearn.log_model(model, skops_trusted_types=skcalib.trusted_types())``.
    """
    package = __name__.partition(".")[0]
    names = set()
    for room in _ROOMS:
        folder = import_module(f"{package}.{room}")
        for module in walk_packages(folder.__path__, f"{package}.{room}."):
            import_module(module.name)
            names |= {
                f"{module.name}.{value.__name__}"
                for value in vars(sys.modules[module.name]).values()
                if isinstance(value, type) and value.__module__ == module.name
            }
    return sorted(names)
