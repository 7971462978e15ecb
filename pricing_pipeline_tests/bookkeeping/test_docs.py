"""The pages say what is there: states, SQL names, commands, settings, source places, messages and links.

That make targets and files behind links exist is held in test_repository.py; that SQL in the pages runs, in
integration/test_docs_sql.py.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest
import typer
import yaml

from pricing_pipeline.cli import app
from pricing_pipeline.cli.program import without_home
from pricing_pipeline.domain.answers import FailureKind
from pricing_pipeline_tests.support.pages import PAGES, ROOT, blocks, relative, table, without_blocks
from pricing_pipeline_tests.tools import cli_page, client_shapes

PACKAGE = ROOT / "pricing_pipeline"
MIGRATIONS = "\n".join(p.read_text() for p in sorted((ROOT / "migrations/versions").glob("*.sql")))
FUNCTION_FILES = "\n".join(p.read_text() for p in sorted((PACKAGE / "db/functions").rglob("*.sql")))
STATES = ROOT / "docs/maintainers/state-machine.md"


def code(page: Path) -> list[str]:
    """Lines of code blocks, and code spans in the text."""
    prose = without_blocks(page)
    lines = [line for block in blocks(page) for line in block.splitlines()]
    lines += re.findall(r"^ {4,}(.+)$", prose, re.MULTILINE)
    return lines + re.findall(r"`([^`\n]+)`", prose)


def section(title: str) -> str:
    """The text under one heading of the page of states, up to the next of its level."""
    found = re.search(rf"^(#+) {title}\n(.*?)(?=^#{{1,2}} |\Z)", STATES.read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"{relative(STATES)} has no section {title!r}"
    return found[2]


@cache
def function_bodies() -> dict[str, str]:
    parts = re.split(r"CREATE (?:OR REPLACE )?FUNCTION pricing\.(\w+)", FUNCTION_FILES)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def literals(name: str, text: str) -> set[str]:
    """Values that a list such as `status IN ('a', 'b')` allows."""
    found = re.search(rf"{name}\s*\(([^()]*)\)", text)
    assert found, f"the migrations hold no {name!r}"
    return set(re.findall(r"'(\w+)'", found[1]))


# ── States ───────────────────────────────────────────────────────────────────────────────────────


def task_statuses() -> set[str]:
    partitions = re.findall(
        r"PARTITION OF pricing\.api_call_queue\b.*?FOR VALUES IN \(([^()]*)\)", MIGRATIONS, re.DOTALL
    )
    return {status for values in partitions for status in re.findall(r"'(\w+)'", values)}


def listed_transitions(title: str) -> set[tuple[str, str, str]]:
    """(from, to, function) of a table of transitions; a cell may list several states to start from."""
    return {
        (start, end, function.strip("`"))
        for starts, end, function, *_ in table(section(title), "from")
        for start in starts.split(", ")
    }


def test_the_pages_task_states_are_those_of_the_table_partitions() -> None:
    listed = {s for start, end, _ in listed_transitions("Tasks") for s in (start, end)} - {"nothing", "gone"}
    assert listed == task_statuses()
    assert len(listed) == 6


def test_the_diagram_draws_the_transitions_of_the_table() -> None:
    ends = {"nothing": "[*]", "gone": "[*]"}
    listed = {(ends.get(start, start), ends.get(end, end)) for start, end, _ in listed_transitions("Tasks")}
    assert set(re.findall(r"^ +(\S+) --> (\S+)$", section("Tasks"), re.MULTILINE)) == listed


def test_no_function_changes_a_tasks_state_unlisted() -> None:
    listed = {(name, end) for _, end, name in listed_transitions("Tasks")}
    hidden = {
        "bury": {"fail_tasks", "recover_tasks", "fail_impossible_tasks"},
        "bury_unrouted": {"enqueue_pairs"},
        "withdraw": {"cancel_tasks", "retire_tasks"},
        "finish_tasks": {"complete_tasks"},
    }
    for name, body in function_bodies().items():
        made = set(re.findall(r"SET status = '(\w+)'", body))
        if "INSERT INTO pricing.api_call_queue_" in body:
            made |= set(re.findall(r"'(completed|failed|cancelled)'", body))
        if "pricing.async_operations_" in body:
            continue  # the test of side effects looks at these
        for end in made:
            for caller in hidden.get(name, {name}):
                assert (caller, end) in listed, f"{relative(STATES)} does not list {caller} -> {end}"


def test_the_states_of_side_effects_are_those_of_their_functions() -> None:
    """`bury_operations` writes the end that its caller names; what is enqueued or retried is pending."""
    named: dict[str, set[str]] = defaultdict(set)
    for _, end, name in listed_transitions("Side effects"):
        named[name].add(end)
    changing = {
        name
        for name, body in function_bodies().items()
        if re.search(r"(INSERT INTO|UPDATE|DELETE FROM) pricing.async_operations_", body)
    }
    for name in changing - {"bury_operations", "queue_operation"}:
        assert name in named, f"{relative(STATES)} does not list {name}"
    for name, made in named.items():
        body = function_bodies()[name]
        if "pricing.queue_operation(" in body:
            body += function_bodies()["queue_operation"]
        for end in made:
            assert f"'{end}'" in body, f"{name} makes nothing {end}"


def test_the_pages_call_outcomes_are_those_of_the_check() -> None:
    allowed = literals(r"outcome_is_known CHECK \(VALUE IN", MIGRATIONS)
    assert {row[0].strip("`") for row in table(section("Calls"), "outcome")} == allowed


def test_the_pages_failure_kinds_are_those_the_code_has() -> None:
    rows = table(section("Kinds of failure"), "kind")
    in_sql = set(re.findall(r"g\.errors, now_, '(\w+)'", FUNCTION_FILES))
    in_sql |= set(re.findall(r"'kind', '(\w+)'", FUNCTION_FILES))
    in_sql |= set(re.findall(r"pricing\.withdraw\([^;]*?, '(\w+)', ", FUNCTION_FILES))
    in_sql |= set(re.findall(r"stop_tasks\([^;]*?,\s+'(\w+)', '[^'\n]+'\)", FUNCTION_FILES))
    assert {row[0].strip("`") for row in rows} == {kind.value for kind in FailureKind} | in_sql
    at_once = {row[0].strip("`") for row in rows if row[2].startswith("dead at once")}
    assert at_once == {kind.value for kind in FailureKind if kind.is_permanent}
    snoozed = {row[0].strip("`") for row in rows if row[2].startswith("snoozed")}
    assert snoozed == literals("snoozed boolean := kind IN", FUNCTION_FILES)


@pytest.mark.parametrize(
    ("title", "first", "column"),
    [
        ("Tasks", "from", 2),
        ("Demand", "event", 1),
        ("Drains", "step", 1),
        ("Drains", "every", 1),
        ("Side effects", "from", 2),
        ("Calls", "outcome", 1),
        ("Breakers", "state", 2),
    ],
)
def test_each_function_in_a_table_of_states_exists(title: str, first: str, column: int) -> None:
    named = {name for row in table(section(title), first) for name in re.findall(r"`(\w+)`", row[column])}
    assert named
    assert named <= sql_names()


def test_the_duties_and_how_often_they_run_are_those_of_the_database() -> None:
    units = {"s": "seconds", "min": "minute", "h": "hour"}
    said = {
        (name, number, units[unit])
        for number, unit, names in ((*every.split(), names) for every, names in table(section("Drains"), "every"))
        for name in re.findall(r"`(\w+)`", names)
    }
    written = re.findall(r"\(\d+, '(\w+)', interval '(\d+) (\w+)'\)", function_bodies()["duty_intervals"])
    assert said == set(written)


# ── Names ────────────────────────────────────────────────────────────────────────────────────────


@cache
def sql_names() -> frozenset[str]:
    made = re.findall(
        r"CREATE (?:OR REPLACE )?(?:FUNCTION|TABLE|SEQUENCE|VIEW|TRIGGER)(?: IF NOT EXISTS)? (?:pricing\.)?(\w+)",
        MIGRATIONS + FUNCTION_FILES,
    )
    return frozenset({*made, "alembic_version"})


@cache
def data_types() -> frozenset[str]:
    """Those of the sample, and those that the pages themselves add."""
    sample = (PACKAGE / "sample/data_types.sql").read_text()
    added = {words[3] for page in PAGES for words in commands(page) if words[1:3] == ["type", "add"] and len(words) > 3}
    return frozenset(re.findall(r"^    \('(\w+)', '", sample, re.MULTILINE)) | added


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_everything_a_page_names_in_the_schema_exists(page: Path) -> None:
    named = set(re.findall(r"(?<![\w/.-])pricing\.([a-z]\w*)", page.read_text()))
    by_type = {f"{kind}_{name}" for kind in ("price_history", "latest_price", "document") for name in data_types()}
    stems = {"price_history_", "latest_price_", "document_", "api_call_queue_completed_"}  # followed by <...>
    assert named - sql_names() - by_type - stems == set()


def test_the_processes_without_up_serve_the_code_server_that_the_page_starts() -> None:
    """The workspace.yaml of the clone loads the code itself, without the settings of the code server."""
    rows = table((ROOT / "docs/deployment.md").read_text(), "process")
    served = {row[0]: re.search(r"\S+workspace\.yaml", row[1]) for row in rows if "workspace.yaml" in row[1]}
    assert served.keys() == {"daemon", "UI"}
    for row in (row for row in rows if row[0] in served):
        found = served[row[0]]
        assert found, row
        content = yaml.safe_load((ROOT / found[0]).read_text())
        (server,) = [place["grpc_server"] for place in content["load_from"]]
        assert f"`{server['socket']['env']}`" in row[2].split(", "), row


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_place_in_the_source_that_a_page_names_exists(page: Path) -> None:
    for span in code(page):
        for path, name in re.findall(r"(?<![\w/.])([a-z_/]+\.py):(\w+(?:\.\w+)?)", span):
            assert name in definitions(PACKAGE / path), f"{path} defines no {name}"
        for path in re.findall(r"(?<![\w/.])((?:pricing_pipeline|migrations|docs)/[\w/.*-]*\w)", span):
            assert list(ROOT.glob(path)), f"there is no {path}"


def definitions(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return found


def test_g7_the_layout_that_the_architecture_shows_is_there() -> None:
    """One package for the code, one for its tests, and Dagster's usual files at the top level."""
    page = (ROOT / "docs/maintainers/architecture.md").read_text()
    (layout,) = re.findall(r"^## Layout\n(.*?)^Imports", page, re.MULTILINE | re.DOTALL)
    inside = set(re.findall(r"\b(\w+(?:\.py|/))(?=[ \n])", layout)) - {"pricing_pipeline/"}
    top = {"pricing_pipeline_tests/", "migrations/", "client/"}
    missing = [name for name in inside - top if not (PACKAGE / name).exists()]
    missing += [name for name in inside & top if not (ROOT / name).exists()]
    assert missing == []
    there = {path.name + "/" * path.is_dir() for path in PACKAGE.iterdir()}
    assert there - inside == {"__init__.py", "py.typed"} | there & {"__pycache__/"}
    files = [
        "pyproject.toml",
        "workspace.yaml",
        "dagster.yaml",
        "Makefile",
        "README.md",
        ".env.example",
        ".ci/run",
    ]
    assert [name for name in files if not (ROOT / name).is_file()] == []
    assert {path.parent.name for path in ROOT.glob("*/__init__.py")} <= {
        PACKAGE.name,
        "pricing_pipeline_tests",
        "benchmarks",
    }


def test_the_processes_of_the_architecture_are_those_that_up_starts() -> None:
    page = (ROOT / "docs/maintainers/architecture.md").read_text()
    tree = ast.parse((PACKAGE / "stack.py").read_text())
    started = set()
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        words = [a.value for a in call.args if isinstance(a, ast.Constant)]
        if isinstance(call.func, ast.Name) and call.func.id in ("_module", "Child"):
            started.update(words[:1])
        if isinstance(call.func, ast.Attribute) and call.func.attr == "watch":
            started.add(words[0])
    assert {row[0].strip("`") for row in table(page, "process")} == started


def test_jobs_sensors_and_schedules_of_the_architecture_exist() -> None:
    page = (ROOT / "docs/maintainers/architecture.md").read_text()
    (said,) = re.findall(r"^- Jobs (.*?)^- ", page, re.MULTILINE | re.DOTALL)
    known = source_strings()
    for name in re.findall(r"`([^`]+)`", said):
        assert set(filter(None, name.split("<data_type>"))) <= known, f"there is no {name}"
    sensors = "\n".join(path.read_text() for path in (PACKAGE / "defs").glob("*.py"))
    names = re.findall(r'@dg\.sensor\([^@]*?\bname=naming\.name\("(\w+)"\)', sensors)
    assert names
    assert set(names) <= set(re.findall(r"`(\w+)`", said))


# ── Commands ─────────────────────────────────────────────────────────────────────────────────────


@cache
def program() -> typer.core.TyperGroup:
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    return group


def commands(page: Path) -> list[list[str]]:
    """Each `pricing-pipeline ...` in code, as words. Comments, redirections and pipes are cut off."""
    found = []
    for line in code(page):
        line = re.sub(r"^\s*(?:\$ )?(?:\w+=\S* )*(?:\.venv/bin/)?", "", line)
        if line.startswith("pricing-pipeline ") and "[OPTIONS]" not in line:
            found.append(shlex.split(re.split(r" [|>&]|  +#| 2>", line)[0], comments=True))
    return found


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_command_a_page_shows_can_be_typed(page: Path) -> None:
    """Names and options are parsed as the program parses them; what it would do is not done."""
    for words in commands(page):
        group: object = program()
        rest, _ = without_home(words[1:])
        while isinstance(group, typer.core.TyperGroup) and rest and not rest[0].startswith("-"):
            if rest[0] in ("COMMAND", "..."):
                return
            assert rest[0] in group.commands, f"there is no command {shlex.join(words)}"
            group, rest = group.commands[rest[0]], rest[1:]
        if not isinstance(group, typer.core.TyperGroup) and rest and "--help" not in rest:
            group.make_context(shlex.join(words), rest)  # type: ignore[attr-defined]


def test_the_page_of_commands_is_what_the_commands_say() -> None:
    assert cli_page.PAGE.read_text() == cli_page.written(), "`make pages` writes it anew"


def test_the_client_has_the_shape_of_a_price_that_the_pipeline_has() -> None:
    assert client_shapes.COPY.read_text() == client_shapes.written(), "`make pages` writes it anew"


# ── Words and links ──────────────────────────────────────────────────────────────────────────────


def source_strings() -> set[str]:
    """Every string of the package, and the constant parts of those that are put together."""
    return {
        node.value
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_messages_in_the_runbook_are_those_of_the_program() -> None:
    """Tables whose first column is `message` quote it; an ellipsis stands for what varies."""
    page = (ROOT / "docs/operations.md").read_text()
    rows = [
        line.split("|")[1].strip()
        for block in re.findall(r"^\| message \|.*\n\|[-|]+\|\n((?:\|.*\n)+)", page, re.MULTILINE)
        for line in block.splitlines()
    ]
    assert len(rows) > 5
    known = source_strings() | {FUNCTION_FILES}
    for row in rows:
        for part in re.split(r"\s*…\s*", row.strip("`")):
            assert any(part in text for text in known), f"no code says {part!r}"


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_table_begins_with_its_heads(page: Path) -> None:
    """An empty line ends a table: the rows after it show as text."""
    for found in re.findall(r"(?:^\|.*\n)+", without_blocks(page), re.MULTILINE):
        assert re.match(r"\|.*\n\|[\s:|-]+\n", found), found


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_link_to_a_heading_finds_it(page: Path) -> None:
    for target, anchor in re.findall(r"\]\((?![a-z]+:)([^)#\s]*)#([^)\s]+)\)", page.read_text()):
        goal = (page.parent / target) if target else page
        headings = re.findall(r"^#+ (.+)$", without_blocks(goal), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
        assert anchor in anchors, f"{relative(goal)} has no heading #{anchor}"


def test_every_page_is_reachable_from_the_readme() -> None:
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop().resolve()
        if page not in seen:
            seen.add(page)
            links = re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+\.md)", page.read_text())
            todo += [page.parent / link for link in links]
    assert {page.resolve() for page in PAGES} <= seen
