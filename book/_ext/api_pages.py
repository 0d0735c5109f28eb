"""Sphinx extension: a package's public functions and classes with their docstrings, read from the source files.

    ```{api} reference_impl.bounds.arithmetic reference_impl.bounds.hardware
    ```

Read with `ast`, not by importing, so that a page costs milliseconds and shows signatures as they were written.
Docstrings stay plain: `code` becomes code, an indented block stays as it is, everything else is text.
"""

import ast
import importlib.util
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

CODE = re.compile(r"``?([^`]+)``?")


def place_of(name: str) -> Path:
    """Where a module lies, without `.py`. Only its outermost package is looked for, and nothing is imported."""
    package, _, rest = name.partition(".")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"no package {package}")
    return Path(spec.origin).parent.joinpath(*filter(None, rest.split(".")))


def find_module(name: str) -> Path:
    """The file of a module. Raises FileNotFoundError."""
    base = place_of(name)
    for file in (base.with_suffix(".py"), base / "__init__.py"):
        if file.is_file():
            return file
    raise FileNotFoundError(f"no module {name}")


def modules_of(package: str) -> list[str]:
    """All public modules of a package and of the packages in it, each package before its modules."""
    base = place_of(package)
    found = [package]
    for file in sorted(base.rglob("*.py")):
        parts = file.relative_to(base).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts and not any(part.startswith("_") for part in parts):
            found.append(".".join((package, *parts)))
    return sorted(found)


def text_nodes(docstring: str) -> list[nodes.Node]:
    """Paragraphs and indented blocks of a docstring."""
    found: list[nodes.Node] = []
    for block in re.split(r"\n\s*\n", docstring.strip("\n")):
        if all(line.startswith("    ") or not line.strip() for line in block.splitlines()):
            found.append(nodes.literal_block("", "\n".join(line[4:] for line in block.splitlines()), language="text"))
        elif re.search(r"^\s*[-*] ", block, re.MULTILINE) or re.search(r"\n {2,}\S", block):
            found.append(nodes.line_block("", *(nodes.line("", "", *_inline(line)) for line in block.splitlines())))
        else:
            found.append(nodes.paragraph("", "", *_inline(" ".join(block.split()))))
    return found


def _inline(text: str) -> list[nodes.Node]:
    parts = CODE.split(text.strip())
    return [nodes.literal(part, part) if n % 2 else nodes.Text(part) for n, part in enumerate(parts) if part]


def signature(function: ast.FunctionDef | ast.AsyncFunctionDef, method: bool = False) -> str:
    """name(arguments) → result, as written, without `self`."""
    arguments = ast.unparse(function.args)
    if method:
        arguments = re.sub(r"^(?:self|cls)(?:, )?", "", arguments)
    result = f" → {ast.unparse(function.returns)}" if function.returns is not None else ""
    return f"{function.name}({arguments}){result}"


def _fields(node: ast.ClassDef) -> str:
    """The fields of a dataclass as a signature."""
    marked = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
    fields = [ast.unparse(item) for item in node.body if marked and isinstance(item, ast.AnnAssign)]
    return f"{node.name}({', '.join(fields)})" if fields else node.name


class Api(SphinxDirective):
    """Sections for the modules given; `package.*` stands for all modules of a package."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        names: list[str] = []
        for argument in self.arguments[0].split():
            names += modules_of(argument[:-2]) if argument.endswith(".*") else [argument]
        found = []
        for name in names:
            try:
                section = self.module(name)
            except (OSError, SyntaxError) as error:
                raise self.error(f"api {name}: {error}") from error
            if section is not None:
                found.append(section)
        return found

    def module(self, name: str) -> nodes.section | None:
        tree = ast.parse(find_module(name).read_text("utf-8"))
        public = [
            node
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and not node.name.startswith("_")
            and ast.get_docstring(node)
        ]
        if not public:
            return None
        section = nodes.section("", nodes.title("", "", nodes.literal(name, name)), ids=[name.replace(".", "-")])
        section["names"].append(name)
        section += text_nodes(ast.get_docstring(tree) or "")
        listed = nodes.definition_list(classes=["api"])
        for node in public:
            listed += self.entry(name, node)
        section += listed
        return section

    def entry(self, module: str, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> nodes.Node:
        head = f"class {_fields(node)}" if isinstance(node, ast.ClassDef) else signature(node)
        term = nodes.term("", "", nodes.literal(head, head), ids=[f"{module}.{node.name}"])
        body = nodes.definition("", *text_nodes(ast.get_docstring(node) or ""))
        if isinstance(node, ast.ClassDef):
            methods = nodes.definition_list()
            for item in node.body:
                if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) and not item.name.startswith("_"):
                    text = ast.get_docstring(item)
                    if text:
                        shown = (
                            item.name
                            if any(ast.unparse(d) == "property" for d in item.decorator_list)
                            else signature(item, True)
                        )
                        methods += nodes.definition_list_item(
                            "", nodes.term("", "", nodes.literal(shown, shown)), nodes.definition("", *text_nodes(text))
                        )
            if methods.children:
                body += methods
        return nodes.definition_list_item("", term, body)


def setup(app: Sphinx) -> dict:
    app.add_directive("api", Api)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
