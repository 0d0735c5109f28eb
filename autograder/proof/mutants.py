"""How much do an assignment's tests see? Small changes are made to the reference, one at a time, and each is tested.

A change that no test notices (a mutant that survives) is a gap in the tests, or it changes nothing that a learner was
asked for. The second kind is listed, with the reason, in `bank/ASSIGNMENT/equivalent_mutants.toml`:

    [[equivalent]]
    function = "quantize_group"
    change = "if largest == 0: -> if largest <= 0:"
    why = "A largest absolute value is never negative."

What came of each function is written to `bank/mutants.csv`, with a hash of the cells that it was measured on.

Mutation analysis is from DeMillo, Lipton and Sayward, "Hints on Test Data Selection" (1978). The mutants run in this
process, with the random inputs that a notebook has on a learner's machine, so that a run can be repeated.
"""

from __future__ import annotations

import ast
import copy
import csv
import hashlib
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass, fields

from autograder.course import source
from autograder.course.course import Course, CourseError
from autograder.proof import in_process, prove

TABLE = "mutants.csv"  # in the course's bank
LEAST = 0.97  # share of the mutants that are not equivalent which the tests of an assignment must notice
_SECONDS = 5.0  # of processor time for one cell; the reference's take less than one
_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mult),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
_NAMES = {  # functions, methods and element types, each by what is easily taken for it
    "max": "min",
    "min": "max",
    "sum": "max",
    "rint": "floor",
    "round": "int",
    "ceil": "floor",
    "cumsum": "asarray",
    "float": "int",
    "float32": "float64",
    "float64": "float32",
    "int8": "int16",
    "uint8": "int64",
    "maximum": "minimum",
    "isfinite": "isreal",
    "startswith": "endswith",
    "removeprefix": "removesuffix",
    "rstrip": "strip",
    "extend": "append",
}
_DROPPED = {"abs", "int", "list", "array", "asarray", "sorted", "copy", "strip"}  # calls that give their argument back
_REMOVED = (ast.Assign, ast.AugAssign, ast.Expr, ast.Raise, ast.Break, ast.Continue)  # statements


@dataclass(frozen=True)
class Mutant:
    """A changed reference. `change` shows the statement before and after."""

    function: str
    change: str
    cell: str
    source: str


@dataclass(frozen=True)
class Tally:
    """What became of an assignment's mutants."""

    killed: list[Mutant]
    survivors: list[Mutant]
    equivalent: list[Mutant]  # survivors that are listed with a reason
    stale: list[str]  # listed, but killed or no longer made

    @property
    def share(self) -> float:
        """Killed mutants in all that are not equivalent."""
        return len(self.killed) / max(len(self.killed) + len(self.survivors), 1)


@dataclass(frozen=True)
class Row:
    """A line of the table: of `mutants` of a function that are not equivalent, the tests notice `noticed`."""

    assignment: str
    function: str
    mutants: int
    noticed: int
    equivalent: int
    measured_on: str  # `fingerprint` of the assignment then


def mutants(cell: source.SourceCell) -> Iterator[Mutant]:
    """Every mutant of an answer cell's reference, each different from the others."""
    tree = ast.parse(cell.source)
    seen = {ast.unparse(tree)}
    for place, node in enumerate(ast.walk(tree)):
        for number in range(len(list(_changes(node)))):
            changed = copy.deepcopy(tree)
            twin = next(other for at, other in enumerate(ast.walk(changed)) if at == place)
            before = _statements(tree)
            _apply(twin, number)
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text in seen or _in_words_only(tree, node):
                continue
            seen.add(text)
            yield Mutant(_owner(tree, node), _difference(before, _statements(changed)), cell.name, text)


def run(course: Course, assignment: str) -> Tally:
    """Test the mutants of an assignment's references. Raises CourseError for a malformed list of equivalent ones."""
    listed = _listed(course, assignment)
    killed, survivors, equivalent = [], [], []
    for path in sorted(course.source(assignment).glob("*.ipynb")):
        cells = source.read(path)
        for cell in cells.cells:
            for mutant in mutants(cell) if cell.kind == "answer" else ():
                if _is_killed(cells, mutant):
                    killed.append(mutant)
                elif (mutant.function, mutant.change) in listed:
                    equivalent.append(mutant)
                else:
                    survivors.append(mutant)
    known = {(mutant.function, mutant.change) for mutant in equivalent}
    stale = [f"{function}: {change}" for function, change in listed if (function, change) not in known]
    return Tally(killed, survivors, equivalent, stale)


def fingerprint(course: Course, assignment: str) -> str:
    """A hash of all that a run depends on: the assignment's code cells."""
    digest = hashlib.sha256()
    for path in sorted(course.source(assignment).glob("*.ipynb")):
        for cell in source.read(path).cells:
            digest.update(f"{cell.name}\0{cell.kind}\0{cell.source}\0".encode())
    return digest.hexdigest()[:12]


def rows(course: Course, assignment: str, tally: Tally) -> list[Row]:
    """The table's lines for an assignment, one for each function, by name."""
    killed, survivors, equivalent = (
        Counter(mutant.function for mutant in kind) for kind in (tally.killed, tally.survivors, tally.equivalent)
    )
    measured_on = fingerprint(course, assignment)
    return [
        Row(assignment, name, killed[name] + survivors[name], killed[name], equivalent[name], measured_on)
        for name in sorted(killed | survivors | equivalent)
    ]


def table(course: Course) -> list[Row]:
    """What earlier runs found; nothing where there was none."""
    path = course.root / prove.BANK / TABLE
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(assignment, function, int(mutants), int(noticed), int(equivalent), measured_on)
            for assignment, function, mutants, noticed, equivalent, measured_on in list(csv.reader(file))[1:]
        ]


def main(course: Course, assignments: Sequence[str]) -> int:
    """The command: prints survivors and shares, and writes the table.

    Returns 0 if the share is high enough everywhere and no entry is stale.
    """
    good = True
    for name in assignments or course.assignments():
        tally = run(course, name)
        for mutant in tally.survivors:
            print(f"  survives: {mutant.function}: {mutant.change}")
        for entry in tally.stale:
            print(f"  listed as equivalent, but it does not survive: {entry}", file=sys.stderr)
        killed, equivalent = len(tally.killed), len(tally.equivalent)
        total = killed + len(tally.survivors)
        print(f"{name}: {killed} of {total} mutants noticed ({tally.share:.1%}), {equivalent} equivalent")
        _write(course, [row for row in table(course) if row.assignment != name] + rows(course, name, tally))
        good = good and tally.share >= LEAST and not tally.stale
    return 0 if good else 1


def _write(course: Course, lines: list[Row]) -> None:
    with (course.root / prove.BANK / TABLE).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Row)])
        writer.writerows(astuple(row) for row in sorted(lines, key=lambda row: (row.assignment, row.function)))


def _is_killed(cells: source.Source, mutant: Mutant) -> bool:
    answers = {mutant.cell: mutant.source}
    untouched = prove.untouched_tests(cells, answers)
    touched = source.Source(tuple(cell for cell in cells.cells if cell.name not in untouched or cell.kind != "test"))
    return next(in_process.failures(touched, answers, _SECONDS), None) is not None


def _listed(course: Course, assignment: str) -> dict[tuple[str, str], str]:
    path = course.root / prove.BANK / assignment / "equivalent_mutants.toml"
    if not path.is_file():
        return {}
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
        return {(one["function"], one["change"]): one["why"] for one in found}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise CourseError(f"{path}: {type(error).__name__}: {error}") from error


def _changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """What can be changed of one node: (its field, the field's new value); field "" stands for the node itself."""
    if isinstance(node, (ast.BinOp, ast.AugAssign, ast.BoolOp)):
        yield from (("op", kind()) for kind in _OPERATORS.get(type(node.op), ()))
    elif isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            for kind in _OPERATORS.get(type(operator), ()):
                yield "ops", [*node.ops[:at], kind(), *node.ops[at + 1 :]]
    elif isinstance(node, ast.Constant):
        yield from (("value", value) for value in _other_values(node.value))
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield "id", _NAMES[node.id]
    elif isinstance(node, ast.Attribute) and node.attr in _NAMES:
        yield "attr", _NAMES[node.attr]
    elif isinstance(node, ast.Call) and len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args):
        yield "args", node.args[::-1]
    elif isinstance(node, ast.Tuple) and len(node.elts) == 2:
        yield "elts", node.elts[::-1]
    elif isinstance(node, ast.Slice):
        yield from ((bound, None) for bound in ("lower", "upper", "step") if getattr(node, bound) is not None)
    elif isinstance(node, (ast.If, ast.While, ast.IfExp)):
        yield from (("test", ast.Constant(value)) for value in (True, False))
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.expr) and (inner := _without_call(value)) is not None:
            yield name, inner
        elif isinstance(value, list) and name in ("body", "orelse"):
            for at, statement in enumerate(value):
                words = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
                if isinstance(statement, _REMOVED) and not words:
                    yield name, [*value[:at], ast.Pass(), *value[at + 1 :]]
        elif isinstance(value, list) and name in ("args", "elts"):
            for at, part in enumerate(value):
                if isinstance(part, ast.expr) and (inner := _without_call(part)) is not None:
                    yield name, [*value[:at], inner, *value[at + 1 :]]


def _without_call(node: ast.expr) -> ast.expr | None:
    """x for abs(x), list(x), -x, not x and the like; None for anything else."""
    if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        return node.operand
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name in _DROPPED and node.args:
            return node.args[0]
        if name in ("copy", "strip") and isinstance(node.func, ast.Attribute):
            return node.func.value
    return None


def _other_values(value: object) -> Iterator[object]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, (int, float)):
        yield from (value + 1, value - 1)
    elif isinstance(value, str):
        yield value + "x"


def _apply(node: ast.AST, number: int) -> None:
    name, value = list(_changes(node))[number]
    setattr(node, name, value)


def _in_words_only(tree: ast.AST, node: ast.AST) -> bool:
    """Whether the node stands in a docstring or in the text of an exception, which no test may compare."""
    for owner in ast.walk(tree):
        texts = []
        if isinstance(owner, ast.Raise) and isinstance(owner.exc, ast.Call):
            texts = list(owner.exc.args)
        elif isinstance(owner, (ast.FunctionDef, ast.ClassDef, ast.Module)) and ast.get_docstring(owner, clean=False):
            texts = [owner.body[0].value]  # type: ignore[attr-defined]
        if any(node is part for text in texts for part in ast.walk(text)):
            return True
    return False


def _owner(tree: ast.Module, node: ast.AST) -> str:
    """The function or class at the top level in which the node stands."""
    return next((str(getattr(top, "name", "")) for top in tree.body if any(node is part for part in ast.walk(top))), "")


def _statements(tree: ast.AST) -> list[str]:
    """Each statement as text on a line; of a compound one the first line."""
    return [ast.unparse(node).split("\n", 1)[0] for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def _difference(before: list[str], after: list[str]) -> str:
    """The innermost statement that differs. Outer ones show only their first line, so few others do."""
    pairs = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    old, new = pairs[-1] if pairs else ("?", "?")
    return f"{old} -> {new}"
