"""Docstrings pass numpydoc's checks, as scikit-learn runs them over its own."""

import inspect
from importlib import import_module

import pytest

from tests.test_architecture import MODULES, PUBLIC

pytest.importorskip("numpydoc")
from numpydoc.validate import validate

# RT02: a result is named as well as typed. GL01, GL02: where a docstring begins is ruff's matter.
NEVER = {"RT02", "GL01", "GL02"}
# Asked of classes alone: extended summary, See Also, examples.
OF_CLASSES = {"ES01", "SA01", "EX01"}
# Hooks of scikit-learn, torch and skorch: what they return is theirs to say.
HOOKS = {
    *("get_metadata_routing", "set_fit_request", "set_score_request", "extra_repr"),
    *("initialize", "initialize_criterion", "initialize_module"),
}


def _checked():
    """Yield the dotted name of everything public, and whether it is a class."""
    assert len(PUBLIC) > 120
    assert len(MODULES) > 10
    for package, name in (param.values for param in PUBLIC):
        value = getattr(import_module(f"skcalib.{package}"), name)
        if not callable(value) or (inspect.isclass(value) and issubclass(value, Warning)):
            continue
        yield f"skcalib.{package}.{name}", inspect.isclass(value)
        for method, function in inspect.getmembers(value) if inspect.isclass(value) else []:
            own = inspect.getattr_static(value, method)
            module = getattr(function, "__module__", None) or ""
            if method.startswith("_") or method in HOOKS or isinstance(own, property):
                continue
            if callable(function) and module.startswith("skcalib"):
                yield f"skcalib.{package}.{name}.{method}", False


@pytest.mark.parametrize(("name", "is_class"), list(_checked()))
def test_docstring_passes_numpydoc(name, is_class):
    errors = validate(name)["errors"]
    left = [e for e in errors if e[0] not in NEVER and (is_class or e[0] not in OF_CLASSES)]
    assert not left
