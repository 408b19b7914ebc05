"""What every test shares: one thread for torch, the same random numbers, closed figures.

`pytest tests` also runs against an installed wheel, without extras and without the rest of the
repository: what needs them is skipped, and says so.
"""

import gc
import signal
import sys
from collections import Counter
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.utils.fixes import parse_version

REPOSITORY = Path(__file__).parent

with suppress(ImportError):
    import matplotlib

    matplotlib.use("Agg")

HAS_GPU = False
with suppress(ImportError):
    import torch

    # With two cores, checks of nets take seconds instead of minutes.
    torch.set_num_threads(1)
    HAS_GPU = torch.cuda.is_available()
ON_GPU = pytest.param("cuda", marks=pytest.mark.skipif(not HAS_GPU, reason="torch finds no GPU"))

# Every run draws the same examples, and a slow machine fails none of them. New ones are searched
# for by `pytest --hypothesis-profile=default`.
if find_spec("hypothesis") is not None:
    from hypothesis import settings
    from hypothesis.internal.conjecture import providers

    settings.register_profile("same", derandomize=True, deadline=None)
    settings.load_profile("same")
    # Hypothesis also draws constants that stand in the loaded modules of the repository: a test
    # would get other examples beside other tests.
    if not hasattr(providers, "_get_local_constants"):
        raise RuntimeError(
            "hypothesis reads the constants of modules elsewhere: adapt conftest.py"
        )
    providers._get_local_constants = lambda: providers._local_constants

# A shell that starts the tests in the background has them ignore Ctrl-C, and with them the
# processes that the tests of Ctrl-C start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    with suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGINT, signal.default_int_handler)


class OptionalModule(pytest.Module):
    """A file of tests, skipped where it imports a package that is not installed."""

    def collect(self):
        try:
            yield from super().collect()
        except self.CollectError as error:
            skip_if_missing(error.__cause__)
            raise


def skip_if_missing(error):
    """Skip where an import failed for a package that is not there at all."""
    while isinstance(error, ImportError):
        package = (error.name or "skcalib").partition(".")[0]
        if find_spec(package) is None:
            pytest.skip(f"needs {package}", allow_module_level=True)
        error = error.__cause__


def pytest_pycollect_makemodule(module_path, parent):
    return OptionalModule.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """Import the package of a module first: pytest would load the module a second time.

    The package would then keep the classes of the first module, and a test would patch the second.
    A file of tests is collected for its tests alone: the search for examples keeps a module that
    it cannot import, half loaded, and the tests of that would be none.
    """
    if file_path.suffix == ".py" and REPOSITORY / "skcalib" in file_path.parents:
        with suppress(ImportError):
            import_module(".".join(file_path.parent.relative_to(REPOSITORY).parts))
    found = yield
    if REPOSITORY / "tests" in file_path.parents:
        return [collector for collector in found if isinstance(collector, OptionalModule)]
    return found


def pytest_addoption(parser):
    parser.addoption(
        "--quick",
        action="store_true",
        help="two cases of every test that takes less than a fifth of a second, and no examples",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Keep what `--quick` asks for, and skip examples that an older scikit-learn would change."""
    if config.getoption("quick"):
        chosen, left_out, cases = [], [], Counter()
        for item in items:
            name = item.nodeid.partition("[")[0]
            slow = item.get_closest_marker("slow") or item.get_closest_marker("long")
            quick = not slow and not isinstance(item, pytest.DoctestItem) and cases[name] < 2
            cases[name] += quick
            (chosen if quick else left_out).append(item)
        config.hook.pytest_deselected(items=left_out)
        items[:] = chosen
    # Examples show numbers, and an older scikit-learn trains other models.
    if parse_version(sklearn.__version__) < parse_version("1.9"):
        older = pytest.mark.skip(reason="shows numbers of scikit-learn 1.9 or later")
        for item in items:
            if isinstance(item, pytest.DoctestItem):
                item.add_marker(older)


def pytest_collection_finish():
    """Twenty thousand items and what they imported stay: no search for garbage looks at them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    return (yield from skipped_without_package())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield from skipped_without_package())


def skipped_without_package():
    try:
        return (yield)
    except ImportError as error:
        skip_if_missing(error)
        raise


@pytest.fixture(scope="session")
def repository():
    """Return the root of the repository, for tests of what no wheel contains."""
    if not (REPOSITORY / "docs").is_dir():
        pytest.skip("needs the files of the repository")
    return REPOSITORY


@pytest.fixture(autouse=True)
def same_random_numbers():
    """Seed what draws without a `random_state`: a test that passed passes again."""
    np.random.seed(0)  # noqa: NPY002
    if "torch" in sys.modules:
        # torch.manual_seed would write down the whole stack for every kind of device, each time.
        sys.modules["torch"].default_generator.manual_seed(0)
        if HAS_GPU:
            sys.modules["torch"].cuda.manual_seed_all(0)


@pytest.fixture(autouse=True)
def close_figures():
    """Close what a test or a page of the guide has drawn: more than 20 open figures warn."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(params=["cpu", ON_GPU])
def device(request, monkeypatch):
    """Return an accelerator: the CPU, which is taken for one, and a GPU where there is one."""
    pytest.importorskip("torch")
    monkeypatch.setattr("skcalib.utils._backends.ACCELERATORS", {"cpu", "cuda"})

    def refuse(self, dtype=None):
        raise TypeError("numpy cannot read a tensor on a device")

    # As it is on a GPU. Tensor.numpy, which is asked for, remains.
    monkeypatch.setattr(torch.Tensor, "__array__", refuse)
    return request.param


@pytest.fixture
def on_host(monkeypatch):
    """Have "auto" mean the CPU, for tests that repeat by hand what a network computed."""
    pytest.importorskip("torch")
    for room in ("skcalib.nets._components", "skcalib.embeddings._images"):
        monkeypatch.setattr(f"{room}.choose_device", lambda: "cpu")


# What torch computes only after it has waited for a device: numbers, and sizes of results.
WAITING = {
    "_local_scalar_dense",
    "_unique2",
    "bincount",
    "equal",
    "masked_select",
    "nonzero",
    "unique_dim",
}


@pytest.fixture
def trips():
    """Return a list that gets the size of whatever is taken to the host, tensor or number.

    One entry a transfer: an array made of what is there already is none. `item`, `bool`, `int`
    and `float` of a tensor are one number each, and so are sizes that depend on values, such as
    those of the rows of a mask.
    """
    torch = pytest.importorskip("torch")
    from torch.utils._python_dispatch import TorchDispatchMode

    sizes, on_host = [], [None]

    class WatchTensors(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            name = getattr(function, "__name__", "")
            if name == "cpu":
                on_host[0] = result
            if name == "cpu" or (name in ("numpy", "tolist") and args[0] is not on_host[0]):
                sizes.append(args[0].numel())
            return result

    class WatchNumbers(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name = function.name().removeprefix("aten::").partition(".")[0]
            masked = name in ("index", "index_put", "index_put_") and any(
                place is not None and place.dtype == torch.bool for place in args[1]
            )
            if masked or name in WAITING:
                sizes.append(1)
            return function(*args, **(kwargs or {}))

    with WatchTensors(), WatchNumbers():
        yield sizes
