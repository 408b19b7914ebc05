"""The parts of a net: module, criterion, how it is called, and their seed."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import skorch
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from torch import Tensor, nn

from .. import losses
from ..utils._backends import choose_device, seed_torch, unwrap_module
from ..utils._estimators import VersionMixin, has_argument
from ..utils._labels import check_several_classes, encode
from ..utils._output import sort_by_similarity

# Call a criterion with the values that it takes; values that it would ignore are errors.

_KEYWORDS = ("sample_weight", "difficulty_weight", "history")
# These do not read the module's output as the logits of all classes.
_NOT_ON_LOGITS = (nn.NLLLoss, nn.BCELoss, nn.BCEWithLogitsLoss)


def check_criterion(criterion: Any) -> frozenset[str]:
    """Return which values of a sample, such as its weight, the criterion's forward takes."""
    if isinstance(criterion, _NOT_ON_LOGITS):
        raise ValueError(
            "criterion must take the logits of all classes, as torch.nn.CrossEntropyLoss does, "
            f"got {type(criterion).__name__}."
        )
    forward = criterion.forward if isinstance(criterion, nn.Module) else criterion
    return frozenset(name for name in _KEYWORDS if has_argument(forward, name))


def uses(criterion: Any, *names: str) -> bool:
    """Return whether a loss of :mod:`skcalib.losses` needs one of these keywords."""
    return any(getattr(criterion, f"uses_{name}", False) for name in names)


def check_takes_proba(criterion: Any, name: str) -> None:
    """Raise if a loss takes no class probabilities, which the parameter `name` needs."""
    indices_only = isinstance(criterion, nn.MultiMarginLoss)
    if indices_only or not getattr(criterion, "takes_soft_target", True):
        raise ValueError(
            f"criterion must take class probabilities as target for {name}, got "
            f"{type(criterion).__name__}, which takes class indices alone."
        )


def compute_criterion_loss(
    criterion: Any,
    logits: Tensor,
    target: Tensor,
    given: dict[str, Tensor],
    accepted: frozenset[str],
) -> Tensor:
    """Return the loss of a batch; `given` are values of its samples, by `accepted` keywords."""
    refused = set(given) - accepted
    if not refused:
        return criterion(logits, target, **given)
    plain = unwrap_module(criterion)
    if refused == {"sample_weight"} and getattr(plain, "reduction", None) in ("mean", "sum"):
        # torch's own criteria take no sample weights, but return one loss for every sample.
        weight = given["sample_weight"]
        others = {name: value for name, value in given.items() if name != "sample_weight"}
        return _weigh(plain, logits, target, weight, others)
    raise ValueError(
        f"criterion must take what fit is given, got {type(plain).__name__}, which has no use "
        f"for {' and '.join(sorted(refused))}."
    )


def _weigh(
    criterion: nn.Module, logits: Tensor, target: Tensor, weight: Tensor, others: dict[str, Tensor]
) -> Tensor:
    """Return the weighted sum or mean of the losses of the samples, as `reduction` has it."""
    reduction = criterion.reduction
    criterion.reduction = "none"  # type: ignore[assignment]
    try:
        losses = criterion(logits, target, **others)
    finally:
        criterion.reduction = reduction
    if losses.shape != weight.shape:
        raise ValueError(
            "criterion must give one loss for every sample where fit is given sample_weight, got "
            f"{type(criterion).__name__} with shape {tuple(losses.shape)} for {len(weight)} "
            "samples."
        )
    total = (weight * losses).sum()
    if reduction == "sum":
        return total
    class_weight = getattr(criterion, "weight", None)
    # A number of that name is something else, such as the strength of a penalty.
    if isinstance(class_weight, Tensor) and class_weight.ndim == 1 and target.ndim == 1:
        weight = weight * class_weight[target]  # torch's mean is weighted by the classes, too
    return total / weight.sum().clamp_min(torch.finfo(losses.dtype).tiny)


# The parts of a net: its module and criterion, built for the data at hand, and their seed.


class AutoDeviceMixin:
    """Let the parameter `device` of a skorch net be "auto".

    The attribute `device`, which skorch reads everywhere, is the device in use; parameters and
    pickles keep the word "auto", so that a clone or a copy on another machine decides anew.
    """

    @property
    def device(self) -> Any:
        """The device in use."""
        device = self.__dict__["device"]
        return choose_device() if isinstance(device, str) and device == "auto" else device

    @device.setter
    def device(self, device: Any) -> None:
        self.__dict__["device"] = device

    def get_params(self, deep: bool = True, **kwargs: Any) -> dict[str, Any]:
        """Return the parameters as given.

        Parameters
        ----------
        deep : bool, default=True
            Whether to return those of callbacks and estimators as well.
        **kwargs : dict
            Further arguments of skorch.

        Returns
        -------
        params : dict
            Values by name.
        """
        # skorch reads the attribute, which is the device in use, not "auto".
        params = super().get_params(deep=deep, **kwargs)  # type: ignore[misc]
        return params | {"device": self.__dict__["device"]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # skorch's __setstate__ looks for the device of the pickle; "auto" is none.
        device = state["device"]
        auto = isinstance(device, str) and device == "auto"
        super().__setstate__(state | {"device": choose_device()} if auto else state)  # type: ignore[misc]
        if auto:
            self.device = "auto"


class NetComponents(AutoDeviceMixin, VersionMixin, skorch.NeuralNetClassifier):
    """A skorch classifier that builds its module and criterion for the data.

    Sizes among the arguments of the module come from the data, a module or criterion given as an
    instance is copied, labels of any type are encoded, and `random_state` seeds everything.
    """

    random_state: Any
    mixed_precision: str | None
    # The trailing underscore keeps skorch from taking these for parameters.
    _data_sizes_: Mapping[str, int] = MappingProxyType({})

    def __setattr__(self, name: str, value: Any) -> None:
        # skorch takes a module that is set after the constructor, by set_params or a grid search,
        # for one that a method made, and refuses it.
        if name in ("module", "criterion"):
            self.__dict__[name] = value
        else:
            super().__setattr__(name, value)

    def initialized_instance(self, instance_or_cls: Any, kwargs: dict[str, Any]) -> Any:
        """Build a module or criterion, or copy the given instance.

        Parameters
        ----------
        instance_or_cls : Module or type
            The parameter of the net.
        kwargs : dict
            Arguments of a class; of an instance, the parameters that its copy gets.

        Returns
        -------
        instance : Module
            A copy, where an instance is given.

        Raises
        ------
        ValueError
            If an instance cannot be built anew from its parameters, as a trained module cannot.
        """
        if isinstance(instance_or_cls, torch.jit.ScriptModule):
            raise TypeError(
                "module and criterion must be given before torch.jit.script, whose copies cannot "
                f"be trained, got a {type(instance_or_cls).__name__}; script module_ after fit."
            )
        # skorch uses an instance without arguments as it is, and would train the user's object;
        # with arguments it builds another one from these alone.
        if isinstance(instance_or_cls, nn.Module):
            instance = copy.deepcopy(instance_or_cls)
            part = "criterion" if instance_or_cls is self.criterion else "module"
            return merge_parameters(instance, kwargs, part) if kwargs else instance
        return super().initialized_instance(instance_or_cls, kwargs)

    def initialize_module(self) -> Self:
        """Build the module with sizes that come from the data, or copy the given instance."""
        self.module_ = self._build_module()
        return self

    def _build_module(self) -> Any:
        _check_callable(module=self.module)
        kwargs = self.get_params_for("module")
        # n_features, n_channels and n_classes, where the module has these arguments; a value that
        # the user gives as module__n_features comes first.
        if not isinstance(self.module, nn.Module):
            wanted = inspect.signature(self.module).parameters
            kwargs = {k: v for k, v in self._data_sizes_.items() if k in wanted} | kwargs
        return self.initialized_instance(self.module, kwargs)

    def initialize_criterion(self) -> Self:
        """Build the criterion, or copy the given instance."""
        criterion = find_criterion(self.criterion)
        # A function is called to build the criterion; one with a target is itself a loss.
        function = not isinstance(criterion, type | nn.Module)
        if function and "target" in inspect.signature(criterion).parameters:
            raise ValueError(
                "criterion must be a class or an instance of torch.nn.Module, got the function "
                f"{getattr(criterion, '__name__', criterion)}."
            )
        built = self.initialized_instance(criterion, self.get_params_for("criterion"))
        self._criterion_takes_ = check_criterion(built)
        self.criterion_ = built
        return self

    def initialize_optimizer(self, triggered_directly: Any = None) -> Self:
        """Build the optimizer for the parameters of the module.

        Parameters
        ----------
        triggered_directly : object, default=None
            Not used; skorch has it.

        Returns
        -------
        self : NetComponents
            The net.
        """
        args, kwargs = self.get_params_for_optimizer("optimizer", self.get_all_learnable_params())
        self.optimizer_ = find_optimizer(self.optimizer)(*args, **kwargs)
        return self

    def get_params_for(self, prefix: str) -> dict[str, Any]:
        """Collect arguments, without ``shuffle`` for an iterator that cannot take it.

        Parameters
        ----------
        prefix : str
            Name of a component, such as "module" or "iterator_train".

        Returns
        -------
        kwargs : dict
            Arguments by name.
        """
        params = super().get_params_for(prefix)
        # A DataLoader refuses shuffle=True next to a sampler, which decides the order itself.
        sampled = "sampler" in params or "batch_sampler" in params
        if prefix == "iterator_train" and (
            sampled or not has_argument(self.iterator_train, "shuffle")
        ):
            params.pop("shuffle", None)
        return params

    def infer(self, x: Any, **fit_params: Any) -> Any:
        """Compute the output of the module, in mixed precision if asked for.

        Parameters
        ----------
        x : Tensor or dict
            Samples of a batch.
        **fit_params : dict
            Passed to the forward of the module.

        Returns
        -------
        output : Tensor or tuple of Tensor
            As the module returns it.
        """
        if isinstance(x, Tensor) and x.is_floating_point():
            kept = next((p.dtype for p in self.module_.parameters()), None)
            x = x.double() if kept == torch.float64 else x
        if self.mixed_precision is None:
            return as_logits(super().infer(x, **fit_params))
        device = next(self.module_.parameters()).device.type
        with torch.autocast(device, dtype=torch.bfloat16):
            return as_logits(super().infer(x, **fit_params))

    def _forget_features(self) -> None:
        """Delete the number and names of the features of earlier data."""
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)

    def _learn_classes(self, y: Any, fresh: bool, classes: ArrayLike | None) -> None:
        """Set the classes of a fresh fit from y or `classes`; labels y must be among them."""
        # skorch's `classes_` is the parameter classes or, if there is none, what is set here.
        if fresh:
            self.classes_inferred_ = np.unique(y if classes is None else np.asarray(classes))
        known = self.classes_
        check_several_classes(known)
        if y is not None:
            encode(y, known)
        self._note_encoding()

    def _note_encoding(self) -> None:
        """Set whether the labels are class indices."""
        known = self.classes_
        # The labels 0, 1, ..., K - 1 are class indices: no look-up is needed for every batch.
        self._labels_are_indices_ = known.dtype.kind in "biuf" and np.array_equal(
            known, np.arange(len(known))
        )

    def _encoded(self, labels: Any) -> NDArray[np.intp]:
        """Return the positions in `classes_` of the labels of a batch."""
        labels = labels.cpu().numpy() if isinstance(labels, Tensor) else np.asarray(labels)
        if self.classes_.dtype == np.bool_:  # which batches hold as 0 and 1
            labels = labels.astype(np.bool_)
        return encode(labels, self.classes_)

    def _targets(self, labels: Any, logits: Tensor) -> Tensor:
        """Return labels as class indices on the device of `logits`."""
        target = labels if self._labels_are_indices_ else self._encoded(labels)
        return torch.as_tensor(target).to(logits.device, torch.long)

    @contextmanager
    def _seeded(self, fresh: bool) -> Iterator[None]:
        """Seed torch's generators by `random_state` for the block, and restore them at its end."""
        if self.random_state is None:
            yield
            return
        if fresh or not hasattr(self, "random_state_"):  # a net loaded from a file has none
            self.random_state_ = check_random_state(self.random_state)
        device = self.device or ("cuda" if torch.cuda.is_available() else "cpu")
        # Every fit draws another seed from `random_state_`, so that a second partial_fit does not
        # repeat the first.
        with seed_torch(self.random_state_.randint(np.iinfo(np.int32).max), device):
            yield


def find_criterion(criterion: Any) -> Any:
    """Return a criterion as it is, or the loss of a name: "FocalLoss", "focal_loss", "focal"."""
    if isinstance(criterion, str):
        known = {_shorten(name): getattr(losses, name) for name in _LOSSES}
        if _shorten(criterion) not in known:
            names = sort_by_similarity(sorted(_LOSSES), criterion)
            raise ValueError(
                "criterion must be a class or an instance of torch.nn.Module, or one of "
                f"{', '.join(names)}, got {criterion!r}."
            )
        return known[_shorten(criterion)]
    _check_callable(criterion=criterion)
    return criterion


def find_optimizer(optimizer: Any) -> Any:
    """Return an optimizer's class as it is, or that of torch by its name: "AdamW", "adamw"."""
    if isinstance(optimizer, torch.optim.Optimizer):
        raise ValueError(
            "optimizer must be a class, which is called with the parameters of module_ and the "
            "arguments optimizer__momentum=0.9 and the like, got an instance of "
            f"{type(optimizer).__name__}."
        )
    if isinstance(optimizer, str):
        known = {
            name.lower(): kind
            for name, kind in vars(torch.optim).items()
            if isinstance(kind, type) and kind is not torch.optim.Optimizer
        }
        if optimizer.lower() not in known:
            raise ValueError(
                "optimizer must be a class of torch.optim or its name, such as 'AdamW', got "
                f"{optimizer!r}."
            )
        return known[optimizer.lower()]
    return optimizer


_LOSSES = [name for name in losses.__all__ if name.endswith("Loss")]


def _shorten(name: str) -> str:
    """Return the name of a loss without case, underscores and the word loss."""
    return name.lower().replace("_", "").removesuffix("loss")


# torch keeps these two words of old releases for `reduction`, without attributes.
_DEPRECATED = ("size_average", "reduce")


def merge_parameters(instance: nn.Module, kwargs: Mapping[str, Any], part: str) -> nn.Module:
    """Return a new object with the parameters of `instance`, those of `kwargs` replaced.

    It must be possible to build the instance from its attributes that have the names of the
    arguments of its class. That holds for the losses here and in torch, and not for a module,
    whose weights are more than its arguments.
    """
    kind = type(instance)
    parameters = inspect.signature(kind).parameters.values()
    variadic = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
    names = [p.name for p in parameters if p.name not in _DEPRECATED]
    own = {name: getattr(instance, name) for name in names if hasattr(instance, name)}
    if variadic or len(own) < len(names) or not _is_equal_to(instance, own):
        raise ValueError(
            f"{', '.join(f'{part}__{name}' for name in kwargs)} must be set in the "
            f"{kind.__name__} itself, or {part} be the class with all of its arguments, got an "
            "instance, whose weights or other parameters a new one would lose."
        )
    return kind(**(own | dict(kwargs)))


def _is_equal_to(instance: nn.Module, own: Mapping[str, Any]) -> bool:
    """Return whether an object built from these arguments has all attributes of `instance`."""
    if any(True for _ in instance.parameters()):  # what is trained follows from no argument
        return False
    rebuilt = _list_attributes(type(instance)(**own))
    given = _list_attributes(instance)
    return given.keys() == rebuilt.keys() and all(
        _is_same(value, rebuilt[name]) for name, value in given.items()
    )


def _list_attributes(instance: nn.Module) -> dict[str, Any]:
    """Return what an object keeps of its own, buffers included."""
    plain = {k: v for k, v in vars(instance).items() if k != "training" and k[0] != "_"}
    return plain | dict(instance.named_buffers()) | dict(instance.named_children())


def _is_same(value: Any, other: Any) -> bool:
    """Return whether two values are equal; objects that do not compare must be one."""
    if isinstance(value, Tensor) and isinstance(other, Tensor):
        return torch.equal(value, other)
    try:
        return value is other or bool(value == other)
    except (RuntimeError, TypeError, ValueError):
        return False


def _check_callable(**part: Any) -> None:
    """Raise unless the one part, passed by its name, can be called."""
    [(name, value)] = part.items()
    if not callable(value):
        raise ValueError(
            f"{name} must be a class or an instance of torch.nn.Module, got {value!r}."
        )


def get_first_output(output: Any) -> Tensor:
    """Return the logits, the first of the outputs of a module."""
    return output[0] if isinstance(output, tuple) else output


def as_logits(output: Any) -> Any:
    """Return tensors and tuples, which skorch takes, as they are; else `logits` of the output."""
    if isinstance(output, Tensor | tuple):
        return output
    logits = (
        output.get("logits") if isinstance(output, Mapping) else getattr(output, "logits", None)
    )
    if not isinstance(logits, Tensor):
        raise TypeError(
            "module must give a tensor of logits, a tuple that begins with them, or a mapping or "
            f"object that has them as logits, got {type(output).__name__}."
        )
    return logits
