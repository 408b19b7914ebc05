"""The architecture: who imports whom, what imports cost, what public names bring."""

import ast
import inspect
import json
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

import pytest

import skcalib

ROOT = Path(skcalib.__file__).parent
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))

# Besides utils, which everybody may import. An import inside a function counts too.
MAY_IMPORT = {
    "difficulty": {"embeddings"},
    "embeddings": set(),
    "labels": {"difficulty", "metrics"},
    "losses": set(),
    "metrics": set(),
    "nets": {"losses", "metrics", "selection"},
    "plots": {"difficulty", "metrics"},
    "posthoc": {"metrics"},
    "report": {"difficulty", "labels", "metrics", "plots", "posthoc", "selection"},
    "selection": {"metrics"},
    "utils": set(),
}
TORCH_PACKAGES = {"embeddings", "losses", "nets"}
# Packages that can be imported here: some need an extra.
HERE = [name for name in PACKAGES if name not in TORCH_PACKAGES or find_spec("skorch")]
# Public modules beside the packages: functions of arrays, and of logits and targets.
MODULES = [
    *HERE,
    "datasets",
    "difficulty.training_dynamics",
    *(["losses.functional"] if "losses" in HERE else []),
]
LIBRARIES = {"sklearn", "torch", "skorch"}
HEAVY = {"torch", "skorch", "open_clip", "timm", "torchvision", "matplotlib", "pandas"}


def _modules():
    return sorted(ROOT.rglob("*.py"))


@cache
def _tree(path):
    return ast.parse(path.read_text())


@cache
def _imports(path, for_types=True, home=ROOT.parent):
    """Return (absolute dotted name, whether it runs when the module is imported) of all.

    Without `for_types`, imports that only type checkers see are left out.
    """
    return list(_each_import(path, for_types, home))


def _each_import(path, for_types, home):
    tree = _tree(path)
    package = path.relative_to(home).parent.parts
    late = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    unseen = set()
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            unseen.update(id(node) for node in ast.walk(block))
    late |= unseen
    for node in ast.walk(tree):
        if id(node) in unseen and not for_types:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in late
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, id(node) not in late
            for alias in node.names:
                yield f"{module}.{alias.name}", id(node) not in late


def test_every_package_has_its_import_rule():
    assert set(PACKAGES) == set(MAY_IMPORT)


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_what_the_design_allows(path):
    parts = path.relative_to(ROOT).parts
    package = parts[0] if len(parts) > 1 else None
    for name, _ in _imports(path):
        names = name.split(".")
        if package is not None and names[0] == "skcalib" and len(names) > 1:
            target = names[1]
            allowed = MAY_IMPORT[package] | {package, "utils", "__version__"}
            assert target not in PACKAGES or target in allowed, f"{path} imports skcalib.{target}"


@pytest.mark.slow
@pytest.mark.parametrize("root", ["skcalib", "benchmarks"])
def test_no_files_import_each_other_in_a_circle(repository, root):
    home = ROOT.parent if root == "skcalib" else repository
    files = {}
    for path in sorted((home / root).rglob("*.py")):
        parts = path.relative_to(home).with_suffix("").parts
        files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    # `from . import _file` names the package as well, which is loaded before its files anyway.
    graph = {
        name: {
            other
            for other, _ in _imports(path, for_types=False, home=home)
            if other in files and not f"{name}.".startswith(f"{other}.")
        }
        for name, path in files.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


@pytest.mark.slow
@pytest.mark.parametrize(
    "package", sorted(path.parent.name for path in ROOT.glob("*/_constants.py"))
)
def test_constants_have_one_home_and_a_use(package):
    trees = {path.stem: _tree(path) for path in (ROOT / package).rglob("*.py")}
    set_in = {
        stem: {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        for stem, tree in trees.items()
    }
    constants = {name for name in set_in.pop("_constants") if name.isupper()}
    used = {
        alias.name
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "_constants"
        for alias in node.names
    }
    assert used == constants
    again = {stem: constants & names for stem, names in set_in.items()}
    assert not any(again.values()), again


# What two packages share lives in the lower one, and the higher one imports it: these names alone.
SHARED = {
    "__main__": {
        "metrics._registry.choose_metric",
        "metrics._registry.list_metrics_to_minimize",
        "metrics._states.get_field",
        "metrics._states.read_count",
        "metrics._states.read_labels",
        "metrics._states.read_state",
        "metrics._states.read_text",
        "report._data.OF_FILES",
        "report._data.find_alignment",
        "report._models.read_models",
        "report._read.describe",
        "report._read.read_predictions",
    },
    "labels": {"difficulty._mahalanobis.make_gaussians_without"},
    "nets": {
        "metrics._registry.AnyMetric",
        "metrics._registry.find_metric",
        "metrics._registry.get_metric",
    },
    "posthoc": {
        "metrics._registry",
        "metrics._risk_model",
        "metrics._states",
        "metrics._temperature_fit",
    },
    "report": {
        "metrics._expected_cost.check_costs",
        "metrics._groupwise.correct_by_holm",
        "metrics._intervals.compute_mean_range",
        "metrics._intervals.compute_mean_pvalue",
        "metrics._risk_model.Sample",
        "metrics._risk_model.get_groups",
        "metrics._risk_model.estimate_smooth_residual",
        "selection._risk_control.control_risk",
    },
    "selection": {
        "metrics._expected_cost.check_costs",
        "metrics._expected_cost.compute_costs_of_decisions",
    },
}


@pytest.mark.slow
def test_private_files_are_imported_by_their_own_package_alone():
    found = {}
    for path in _modules():
        package = path.relative_to(ROOT).with_suffix("").parts[0]
        for name, _ in _imports(path):
            owner, *private = name.removeprefix("skcalib.").split(".")
            if not name.startswith("skcalib.") or owner in ("utils", "__version__", package):
                continue
            if len(private) == 2 and private[0].startswith("_"):
                found.setdefault(package, set()).add(f"{owner}.{'.'.join(private)}")
    found["posthoc"] = {name.rpartition(".")[0] for name in found["posthoc"]}
    assert found == SHARED


# Where an array may be something else than numpy's. All other files pass it on: `@by_chunks` and
# `send_chunks_to` send dask arrays to these, and blocks come from `_numeric` and `_proba`.
DASK = {
    "difficulty/_mahalanobis.py",
    "labels/_dask.py",
    "metrics/_accumulator.py",
    "metrics/_alignment.py",
    "metrics/_decisions.py",  # means over chunks
    "metrics/_expected_cost.py",
    "metrics/_monitor.py",
    "metrics/_per_sample.py",
    "selection/_selective_classifier.py",
    "selection/_selectors.py",
    "utils/_arrays.py",
    "utils/_backends.py",
}
TENSORS = {
    "difficulty/_distances.py",
    "difficulty/_gaussians.py",
    "difficulty/_neighbors.py",
    "difficulty/_networks.py",
    "posthoc/_dask.py",  # sums over scores there
    "utils/_backends.py",
    "utils/_estimators.py",
    "utils/_numeric.py",
    "utils/_proba.py",
}


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_other_kinds_of_arrays_have_few_homes(path):
    where = path.relative_to(ROOT).as_posix()
    used = {node.id for node in ast.walk(_tree(path)) if isinstance(node, ast.Name)}
    assert where in DASK or "is_chunked" not in used
    assert where in TENSORS or not used & {"back_end", "TensorRows"}


@cache
def _private_names_of_libraries():
    """Private names of the classes from scikit-learn, torch and skorch that ours derive from."""
    import skorch
    import skorch.callbacks
    import torch
    from sklearn.base import BaseEstimator

    bases = [BaseEstimator, skorch.NeuralNetClassifier, skorch.callbacks.EpochScoring]
    names = {name for base in bases for name in dir(base)} | set(dir(torch.nn.Module))
    allowed = {"_parameter_constraints", "_repr_html_", "_estimator_type"}
    return {n for n in names if n.startswith("_") and not n.startswith("__")} - allowed


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_private_names_of_libraries_have_one_home(path):
    where = path.relative_to(ROOT).as_posix()
    if where == "utils/_compat.py":
        return
    forbidden = _private_names_of_libraries()
    tree = _tree(path)
    of_libraries = set()  # `torch`, `nn`, ...: what a private name may be reached through
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module.split(".")[0]]
        else:
            continue
        if LIBRARIES & set(names):
            for alias in node.names:
                of_libraries.add(alias.asname or alias.name.split(".")[0])
                whole = [*getattr(node, "module", "").split("."), *alias.name.split(".")]
                assert not [n for n in whole if n.startswith("_")], f"{where}: {whole}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.FunctionDef):
            name = node.attr if isinstance(node, ast.Attribute) else node.name
            assert name not in forbidden, f"{where} uses {name}"
        if isinstance(node, ast.Attribute) and re.match(r"_(?!_)", node.attr):
            assert ast.unparse(node).split(".")[0] not in of_libraries, ast.unparse(node)


def _defined_names(path):
    for node in _tree(path).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if isinstance(target, ast.Name):
                yield target.id


@pytest.mark.slow
def test_helpers_are_imported_from_the_module_that_defines_them():
    helpers = {p.stem: set(_defined_names(p)) for p in (ROOT / "utils").glob("_[a-z]*.py")}
    assert len(helpers) <= 8
    del helpers["_compat"]  # it also hands on private names of libraries
    for path in _modules():
        for name, _ in _imports(path):
            parts = name.split(".")
            if parts[:2] == ["skcalib", "utils"] and len(parts) == 4 and parts[2] in helpers:
                assert parts[3] in helpers[parts[2]], f"{path} imports {name}"


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_annotations_are_not_evaluated(path):
    """Else `help` spells out the union behind ArrayLike in every signature."""
    tree = _tree(path)
    defines = any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in ast.walk(tree))
    names = [a.name for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names]
    assert not defines or "annotations" in names


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_heavy_packages_are_imported_late(path):
    parts = path.relative_to(ROOT).parts
    allowed = {"torch", "skorch"} if parts[0] in TORCH_PACKAGES else set()
    for name, at_import in _imports(path):
        top = name.split(".")[0]
        assert not (at_import and top in HEAVY - allowed), f"{path} imports {top} at module level"


LIGHT = ["", ".datasets", *(f".{name}" for name in PACKAGES if name not in TORCH_PACKAGES)]


@pytest.fixture(scope="module")
def loaded():
    """Return the modules that are loaded after each package, imported one after the other."""
    code = f"""
import sys, json, importlib
loaded = {{}}
for package in {LIGHT}:
    importlib.import_module("skcalib" + package)
    loaded[package] = list(sys.modules)
print(json.dumps(loaded))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("package", LIGHT)
def test_import_loads_nothing_heavy(package, loaded):
    # scikit-learn itself imports pandas where it is installed.
    assert not (HEAVY - {"pandas"}) & set(loaded[package])
    if not package:
        assert not {"numpy", "sklearn", "scipy"} & set(loaded[package])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("package", "missing", "extra"),
    [
        ("losses", "torch", "nets"),
        ("nets", "torch", "nets"),
        ("nets", "skorch", "nets"),
        ("embeddings", "torch", "embeddings"),
    ],
)
def test_missing_extra_is_named(package, missing, extra):
    if missing == "skorch":  # torch is asked for before it
        pytest.importorskip("torch")
    code = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import skcalib.{package}
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith(f"ImportError: {missing} is required here")
    assert last.endswith(
        f"pip install 'skcalib[{extra}] @ git+https://github.com/skcalib/skcalib'"
    )


@pytest.mark.parametrize("package", PACKAGES)
def test_modules_are_private(package):
    for path in (ROOT / package).rglob("*.py"):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        # Without torch, the functional losses are there and cannot be imported.
        assert path.name.startswith("_") or module in (*MODULES, "losses.functional"), path


@pytest.mark.parametrize("name", [n for n in skcalib.__all__ if n not in PACKAGES])
def test_top_level_names_resolve(name):
    assert getattr(skcalib, name) is not None
    assert name in dir(skcalib)


def test_unknown_top_level_name():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        skcalib.nonsense  # noqa: B018


def _public_names():
    for package in MODULES:
        module = import_module(f"skcalib.{package}")
        for name in module.__all__:
            yield pytest.param(package, name, id=f"{package}.{name}")


PUBLIC = list(_public_names())


@pytest.mark.parametrize("package", MODULES)
def test_all_is_sorted(package):
    names = import_module(f"skcalib.{package}").__all__
    assert names == sorted(set(names))


@pytest.mark.parametrize("package", MODULES)
def test_every_public_name_has_one_heading_in_the_reference(repository, package):
    groups = run_path(str(repository / "docs" / "api_groups.py"))["GROUPS"][package]
    names = [name for group in groups.values() for name in group]
    assert sorted(names) == import_module(f"skcalib.{package}").__all__


def test_every_display_has_an_example(repository):
    """Its page shows the picture of the example."""
    examples = "\n".join(path.read_text() for path in (repository / "examples").rglob("*.py"))
    names = import_module("skcalib.plots").__all__
    assert not [name for name in names if f"{name}.from_" not in examples]


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_public_name_is_told_about(repository, package, name):
    folders = ("how_to", "understand", "measured", "reference")
    guide = "\n".join(
        p.read_text() for d in folders for p in (repository / "docs" / d).glob("*.rst")
    )
    assert name in guide, f"{name} has no place in the user guide"
    assert f"`{name}`" in (repository / "CHANGELOG.md").read_text(), f"{name}: no changelog line"


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_public_docstring_is_complete(package, name):
    value = getattr(import_module(f"skcalib.{package}"), name)
    if not callable(value):
        return
    doc = inspect.getdoc(value) or ""
    assert "Examples\n--------" in doc, f"{name} has no example"
    if inspect.isclass(value) and issubclass(value, Warning):
        return
    if inspect.signature(value).parameters:
        assert "Parameters\n----------" in doc, f"{name} does not document its parameters"
    if inspect.isfunction(value):
        assert "Returns\n-------" in doc, f"{name} does not document what it returns"


# A parameter is described where it stands: a reader of help() is sent nowhere else.
_SENT_ELSEWHERE = re.compile(r"^(All )?[Aa]s (for|of|in) |: of :(class|func|meth):")


def _entries(doc):
    """Yield (names, type, text) of the parameters of a docstring in numpydoc's form."""
    _, _, section = doc.partition("Parameters\n----------\n")
    section = re.split(r"\n\n[A-Z][A-Za-z ]+\n-{4,}\n", section)[0]
    for entry in re.split(r"\n(?=\S)", section.strip("\n")):
        head, *text = entry.replace("\\\n", " ").split("\n")
        names, _, kind = head.partition(" : ")
        names = [name.strip().lstrip("*") for name in names.split(",")]
        yield names, kind.strip(), " ".join(" ".join(text).split())


def _undescribed(function):
    """Return the parameters without a type, a default, or a description of their own."""
    described = {
        name: (kind, text)
        for names, kind, text in _entries(inspect.getdoc(function) or "")
        for name in names
    }
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        kind, text = described.get(name, ("", ""))
        missing = not kind or not text or _SENT_ELSEWHERE.search(f"{kind} {text}")
        named = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        has_default = named and parameter.default is not parameter.empty
        if name != "self" and (missing or (has_default and "default" not in kind)):
            found.append(name)
    return found


def _public_functions(value):
    """Yield a function, or a class and its public methods that are ours."""
    if not callable(value) or (inspect.isclass(value) and issubclass(value, Warning)):
        return
    yield value
    for name, method in inspect.getmembers(value, inspect.isfunction):
        if not name.startswith("_") and method.__module__.startswith("skcalib"):
            yield method


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_every_parameter_is_described_in_help(package, name):
    for function in _public_functions(getattr(import_module(f"skcalib.{package}"), name)):
        assert not _undescribed(function), function


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_help_shows_the_defaults_of_the_signature(package, name):
    for function in _public_functions(getattr(import_module(f"skcalib.{package}"), name)):
        parameters = inspect.signature(function).parameters
        for names, kind, _ in _entries(inspect.getdoc(function) or ""):
            if told := re.search(r"default=(.*)$", kind):
                (default,) = {parameters[one].default for one in names}
                try:
                    assert ast.literal_eval(told[1]) == default
                except ValueError:  # the name of a function or class
                    assert told[1].split(".")[-1] == default.__name__


# Why two have another default stands in their docstrings: without folds, the scores are in-sample;
# and five folds put a threshold too low.
ONE_DEFAULT = {"n_resamples": 999, "cv": 5}
OTHER_DEFAULTS = {"LossScorer": None, "NoveltyDetector": "auto"}


@pytest.mark.parametrize("parameter", ONE_DEFAULT)
def test_a_parameter_of_many_has_one_default(parameter):
    found = {}
    for package, name in (param.values for param in PUBLIC):
        value = getattr(import_module(f"skcalib.{package}"), name)
        methods = inspect.getmembers(value, inspect.isfunction) if inspect.isclass(value) else []
        for method, function in [("", value)] * callable(value) + methods:
            with suppress(ValueError):  # a builtin
                taken = inspect.signature(function).parameters.get(parameter)
                if taken is not None and not method.startswith("_"):
                    found[f"{name}.{method}".strip(".")] = taken.default
    assert len(found) >= 7
    others = OTHER_DEFAULTS if parameter == "cv" else {}
    assert found == dict.fromkeys(found, ONE_DEFAULT[parameter]) | others


# What leads nowhere: a category of warnings.
NO_SEE_ALSO = {"SkcalibWarning"}


def _resolve(name, package):
    """Import what `name` says: a name of the package or of skcalib, or one of another library."""
    first, *rest = name.split(".")
    owner = import_module(f"skcalib.{package}")
    if rest and hasattr(owner, first):  # a method of a class of the package
        return getattr(getattr(owner, first), *rest)
    if rest:
        owner, *rest = import_module(first), *rest
    for i, part in enumerate(rest[:-1]):
        if not hasattr(owner, part):
            import_module(".".join([first, *rest[: i + 1]]))
        owner = getattr(owner, part)
    return getattr(owner, rest[-1] if rest else first)


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_public_docstring_leads_on(package, name):
    value = getattr(import_module(f"skcalib.{package}"), name)
    _, heading, after = inspect.getdoc(value).partition("See Also\n--------\n")
    assert bool(heading) == (name not in NO_SEE_ALSO)
    for entry in re.findall(r"^(\S.*?) :(?: |$)", after.partition("\n\n")[0], re.MULTILINE):
        for target in entry.split(", "):
            assert target != name
            assert _resolve(target, package) is not None


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_signature_can_be_read(package, name):
    value = getattr(import_module(f"skcalib.{package}"), name)
    if inspect.isfunction(value):
        assert "Union[" not in str(inspect.signature(value))
        assert len(str(inspect.signature(value))) <= 500


@pytest.mark.parametrize(("package", "name"), PUBLIC)
def test_public_signature_is_annotated(package, name):
    value = getattr(import_module(f"skcalib.{package}"), name)
    if not inspect.isfunction(value):
        return
    signature = inspect.signature(value)
    missing = [p.name for p in signature.parameters.values() if p.annotation is p.empty]
    assert not missing, f"{name}: no annotation on {missing}"
    assert signature.return_annotation is not signature.empty
