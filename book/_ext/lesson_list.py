"""Sphinx extension: `{lesson-list}`, a card for each lesson. Title and time are those that each notebook states; the
page says what a reader will be able to do.

```{lesson-list}
01_prefill_and_decode: Say how fast a model can be on a given GPU.
```
"""

import json
import re
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

TIME = re.compile(r"\*\*Time:\*\*\s*([^.]+)\.")


def label(name: str) -> str:
    """What a reader calls a lesson: "3" for `03_kv_cache`, "4a" for `04a_number_formats`."""
    return name.split("_")[0].removeprefix("0") or "0"


def first_lines(notebook: Path) -> tuple[str, str]:
    """(title, time to plan) of a lesson. Raises ValueError where it does not state them."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    title, time = re.search(r"^# (.+)$", text, re.MULTILINE), TIME.search(text)
    if not title or not time:
        raise ValueError(f"{notebook.name} does not state its title and its time ('**Time:** about an hour.')")
    return title[1], time[1]


class LessonList(SphinxDirective):
    has_content = True

    def run(self) -> list[nodes.Node]:
        cards = ["::::{grid} 1 2 2 3", ":gutter: 3", ":class-container: lesson-cards", ""]
        for name, what in yaml.safe_load("\n".join(self.content)).items():
            file = Path(self.env.srcdir) / "notebooks" / f"{name}.ipynb"
            if not file.exists():
                raise self.error(f"lesson-list: there is no lesson {name}")
            try:
                title, time = first_lines(file)
            except ValueError as error:
                raise self.error(str(error)) from error
            card = (f":::{{grid-item-card}} {label(name)} · {title}", f":link: /notebooks/{name}", ":link-type: doc")
            cards += [*card, "", what, "", "```{card-footer}", time, "```", ":::", ""]
        return self.parse_text_to_nodes("\n".join([*cards, "::::"]))


def setup(app: Sphinx) -> dict:
    app.add_directive("lesson-list", LessonList)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
