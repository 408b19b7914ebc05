"""Which samples to train on?"""

__all__: list[str] = []
