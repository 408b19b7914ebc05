"""``device="auto"`` for skorch nets."""

from __future__ import annotations

from typing import Any

from ..utils._device import auto_device


class AutoDeviceMixin:
    """Let the parameter `device` of a skorch net be "auto".

    The attribute `device`, which skorch reads everywhere, is the device in use; parameters and
    pickles keep the word "auto", so that a clone or a copy on another machine decides anew.
    """

    @property
    def device(self) -> Any:
        """The device in use."""
        device = self.__dict__["device"]
        return auto_device() if isinstance(device, str) and device == "auto" else device

    @device.setter
    def device(self, device: Any) -> None:
        self.__dict__["device"] = device

    def get_params(self, deep: bool = True, **kwargs: Any) -> dict[str, Any]:
        """Return the parameters, as given.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of callbacks and nested estimators.
        **kwargs : dict
            Passed on to skorch.

        Returns
        -------
        params : dict
            Names and values.
        """
        # skorch reads the attribute, which is the device in use, not the word.
        params = super().get_params(deep=deep, **kwargs)  # type: ignore[misc]
        return params | {"device": self.__dict__["device"]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # skorch's __setstate__ looks for the device of the pickle; "auto" is none.
        device = state["device"]
        auto = isinstance(device, str) and device == "auto"
        super().__setstate__(state | {"device": auto_device()} if auto else state)  # type: ignore[misc]
        if auto:
            self.device = "auto"
