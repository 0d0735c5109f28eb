"""Packages that only some commands need are extras of the distribution; a command names the extra it lacks."""

from importlib.util import find_spec


def require(extra: str, *modules: str) -> None:
    """ValueError, with the command that mends it, unless all these modules can be imported."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise ValueError(f"{', '.join(missing)} not installed; get it with: pip install 'llm-serving-course[{extra}]'")
