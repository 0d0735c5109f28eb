"""nbgrader in a process that grades one submission after another: engines, queries and checked schemas are kept.

nbgrader opens its gradebook about eight times for a submission, each time with a new engine that has to compile every
query again and asks for every table; and it checks its own schema before each cell's metadata. In a command that ends
after one submission that does not matter. Nothing here changes what is computed or stored.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from types import SimpleNamespace
from typing import Any


@lru_cache(maxsize=1)
def keep_between_submissions() -> None:
    """Make nbgrader keep them, from now on in this process."""
    import nbgrader.api
    import sqlalchemy
    from alembic.script import ScriptDirectory
    from jsonschema.exceptions import best_match
    from jsonschema.validators import validator_for
    from nbgrader.dbutil import ALEMBIC_DIR
    from nbgrader.nbgraderformat import common
    from nbgrader.preprocessors import overwritecells

    from autograder.course import ledger

    # For a new gradebook nbgrader runs the program `alembic`, which has to be on PATH and takes seconds, only to learn
    # the newest revision of the schema. The same answer from the library:
    nbgrader.api.get_alembic_version = lambda: ScriptDirectory(ALEMBIC_DIR).get_current_head()

    # Closing a gradebook closes an engine's connections; the engine keeps its compiled queries.
    engines = nbgrader.api.create_engine = lru_cache(maxsize=8)(nbgrader.api.create_engine)
    os.register_at_fork(after_in_child=engines.cache_clear)

    tables = nbgrader.api.Base.metadata
    create_all = tables.create_all

    def create_if_empty(bind: Any) -> None:
        if not sqlalchemy.inspect(bind).get_table_names():
            create_all(bind=bind)

    tables.create_all = create_if_empty

    validators: dict[str, Any] = {}
    seen: set[tuple[str, str]] = set()  # every submission has the same metadata, since it was rebuilt

    def validate(instance: Any, schema: Any) -> None:
        key = json.dumps(schema)
        here = key, json.dumps(instance, sort_keys=True)
        if here in seen:
            return
        if key not in validators:
            kind = validator_for(schema)
            kind.check_schema(schema)
            validators[key] = kind(schema)
        if (error := best_match(validators[key].iter_errors(instance))) is not None:
            raise error
        if len(seen) < 10_000:
            seen.add(here)

    common.jsonschema = SimpleNamespace(validate=validate)

    overwritecells.Gradebook = ledger.Sources
