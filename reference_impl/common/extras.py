"""Optional packages: extras of the distribution that only some commands need."""

from importlib.util import find_spec


def require(extra: str, *modules: str) -> None:
    """ValueError, with the pip command that installs the extra, unless all these modules can be imported."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise ValueError(f"{', '.join(missing)} not installed; get it with: pip install 'llm-serving-course[{extra}]'")
