"""How hard is each sample?"""

__all__: list[str] = []
