"""The files of `workspace.d`: code locations of others, and what is said of a file that cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml
from pydantic import SecretStr

from pricing_pipeline import stack
from pricing_pipeline.processes.code_locations import CodeLocation, read
from pricing_pipeline.processes.dagster_home import workspace, write
from pricing_pipeline.processes.home import folder_of_sockets, tidy_home
from pricing_pipeline.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace.d"
    made.mkdir(mode=0o700)
    (made / "theirs.py").touch()
    (made / "sub").mkdir()
    return made


def put(folder: Path, text: str, name: str = "theirs.yaml") -> None:
    (folder / name).write_text(text)
    (folder / name).chmod(0o600)


def test_g7_each_kind_of_location_becomes_a_code_server_of_ours_or_is_asked_where_it_is(folder: Path) -> None:
    put(
        folder,
        """
load_from:
  - python_file: theirs.py
  - python_file: {relative_path: theirs.py, attribute: defs, working_directory: sub}
  - python_module: analytics.definitions
  - python_package: {package_name: sales, location_name: shop}
  - autoload_defs_module: {module_name: dbt.defs, executable_path: """
        + sys.executable
        + """}
  - grpc_server: {host: elsewhere, port: 4000, location_name: far}
""",
    )
    locations, faults = read(folder.parent)
    assert faults == []
    assert [location.name for location in locations] == [
        "theirs.py",
        "theirs.py:defs",
        "analytics.definitions",
        "shop",
        "dbt.defs",
        "far",
    ]
    *started, far = locations
    targets = [location.command[location.command.index("start") + 1 :][:4] for location in started]
    assert targets == [
        ("--python-file", f"{folder}/theirs.py", "--working-directory", str(folder)),
        ("--python-file", f"{folder}/theirs.py", "--working-directory", f"{folder}/sub"),
        ("--module-name", "analytics.definitions", "--working-directory", str(folder)),
        ("--package-name", "sales", "--working-directory", str(folder)),
        ("--autoload-defs-module-name", "dbt.defs", "--working-directory", str(folder)),
    ]
    assert {location.command[0] for location in started} == {sys.executable}
    assert far.command == ()
    home = folder.parent / "dagster"
    write(home, ROOT, locations, folder.parent)
    entries = [entry["grpc_server"] for entry in yaml.safe_load(workspace(home).read_text())["load_from"]]
    assert [entry["location_name"] for entry in entries] == [
        "pricing_pipeline",
        *(one.name for one in locations),
    ]
    sockets = [entry["socket"] for entry in entries[1:-1]]
    assert sockets == [str(location.socket(folder.parent)) for location in started]
    assert len({*sockets}) == len(sockets)
    assert entries[-1] == {"host": "elsewhere", "port": 4000, "location_name": "far"}


def test_every_kernel_takes_the_address_of_a_socket_however_long_the_home_is(tmp_path: Path) -> None:
    for length in range(len(str(tmp_path)) + 2, 140):
        home = tmp_path / ("x" * (length - len(str(tmp_path)) - 1))
        socket = CodeLocation("theirs", home).socket(folder_of_sockets(home))
        tidy_home(home)
        assert len(str(socket)) <= 103


def test_what_others_need_of_dagster_is_on_where_they_are_served_and_costs_nothing_elsewhere(
    folder: Path,
) -> None:
    put(folder, "load_from: [{python_file: theirs.py}]")
    home = folder.parent / "dagster"
    for beside, expected in ((read(folder.parent)[0], True), ([], False)):
        write(home, ROOT, beside)
        instance = yaml.safe_load((home / "dagster.yaml").read_text())
        assert instance["auto_materialize"] == {"enabled": expected, "use_sensors": expected}
        assert instance["run_retries"] == {"enabled": expected} | ({"max_retries": 0} if expected else {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("load_from: [", "is not YAML: expected the node content, but found '<stream end>' in line 1"),
        ("", "must have a list load_from and nothing else"),
        ("load_from: []", "must have a list load_from and nothing else"),
        ("load_from: [{python_file: theirs.py}]\nother: 1", "must have a list load_from and nothing else"),
        ("load_from: [theirs.py]", "must name, in each item of load_from, one of python_file, python_module"),
        ("load_from: [{python_fil: theirs.py}]", "must name, in each item of load_from, one of python_file"),
        ("load_from: [{python_file: {path: x}}]", "may say of a python_file only relative_path, attribute"),
        ("load_from: [{python_file: {attribute: x}}]", "must say relative_path of a python_file"),
        ("load_from: [{python_module: {module_name: 1}}]", "must say module_name of a python_module as text"),
        (
            "load_from: [{python_file: none.py}]",
            "workspace.d/none.py, which does not exist or cannot be read",
        ),
        (
            "load_from: [{python_module: {module_name: a, working_directory: none}}]",
            "workspace.d/none, which does not exist",
        ),
        (
            "load_from: [{python_module: {module_name: a, executable_path: none/python}}]",
            "workspace.d/none/python, which does not exist or cannot be run",
        ),
        ("load_from: [{grpc_server: {host: a}}]", "must name either a socket or a port of a grpc_server"),
        ("load_from: [{grpc_server: {port: abc}}]", "must say port of a grpc_server as a number"),
        ("load_from: [{grpc_server: {port: true}}]", "must say port of a grpc_server as a number"),
        ("load_from: [{grpc_server: {port: {env: PORT}}}]", "must say port of a grpc_server as a number"),
        ("load_from: [{grpc_server: {port: 1, host: 5}}]", "must say host of a grpc_server as text"),
        (
            "load_from: [{grpc_server: {port: 1, ssl: maybe}}]",
            "must say ssl of a grpc_server as true or false",
        ),
        (
            "load_from: [{grpc_server: {port: 1, additional_metadata: 1}}]",
            "must say additional_metadata of a grpc_server as a mapping",
        ),
        ("load_from: [{grpc_server: {socket: []}}]", "must say socket of a grpc_server as text"),
        ("load_from: [{python_module: 2026-13-45}]", "is not YAML: month must be in 1..12"),
        ("load_from: !!int x", "is not YAML: invalid literal for int"),
        (f"load_from: {'[' * 1500}", "is nested too deeply"),
        (r'load_from: [{python_file: "a\0b.py"}]', "must say relative_path of a python_file as text"),
        ("load_from: [{python_module: {module_name: a, location_name: a/b}}]", "a location_name of letters"),
        (
            "load_from: [{python_module: {module_name: a, location_name: pricing_pipeline}}]",
            "which is the name of ours: give it another location_name",
        ),
        ("load_from: [{python_module: good}]", "good.yaml: give one another location_name"),
        ("load_from: [{python_module: a}, {python_package: a}]", "give one another location_name"),
    ],
)
def test_a_bad_file_is_named_and_the_others_are_served(folder: Path, text: str, says: str) -> None:
    put(folder, "load_from: [{python_module: good}]", "good.yaml")
    put(folder, text)
    locations, (fault,) = read(folder.parent)
    assert [location.name for location in locations] == ["good"]
    assert fault.startswith(f"{folder}/theirs.yaml ")
    assert says in fault
    assert fault.endswith("None of its code locations is served until that is corrected; then restart")


def test_b2_a_file_that_others_may_change_runs_no_code(folder: Path) -> None:
    put(folder, "load_from: [{python_file: theirs.py}]")
    (folder / "theirs.yaml").chmod(0o666)
    locations, (fault,) = read(folder.parent)
    assert locations == []
    assert f"{folder}/theirs.yaml is not safe: " in fault


WORKER, OWNER, OTHER = (f"postgresql+psycopg2://{login}@127.0.0.1:9/dagster" for login in ("worker", "owner", "other"))


@pytest.mark.parametrize(
    ("dagster_url", "is_storage_ours", "why_not"),
    [
        (OTHER, True, None),
        (OTHER, False, "Dagster's storage was made by somebody else: add them to the workspace of its owner"),
        (
            WORKER,
            True,
            "they would know the password with which the pipeline writes prices. Set PRICING_DAGSTER_URL",
        ),
        (
            OWNER,
            True,
            "they would know the password with which the pipeline writes prices. Set PRICING_DAGSTER_URL",
        ),
    ],
)
def test_a4_on_a_server_of_your_own_locations_are_served_with_a_login_of_their_own_alone(
    folder: Path, dagster_url: str, is_storage_ours: bool, why_not: str | None
) -> None:
    put(folder, "load_from: [{python_file: theirs.py}]")
    settings = Settings(
        home=folder.parent,
        database_url=SecretStr("postgresql://worker@127.0.0.1:9/pricing"),
        owner_url=SecretStr("postgresql://owner@127.0.0.1:9/pricing"),
        reader_url=SecretStr("postgresql://reader@127.0.0.1:9/pricing"),
    )
    home = folder.parent / "dagster"
    write(home, ROOT)
    environment = {
        "PRICING_DAGSTER_URL": dagster_url,
        "PRICING_HOME": str(folder.parent),
        "DAGSTER_HOME": str(home),
    }
    known = stack._known_to_locations(settings, environment)
    assert known["PRICING_READER_URL"] == "postgresql://reader@127.0.0.1:9/pricing"
    said: list[str] = []
    beside = stack._beside(settings, environment, known, said.append, is_storage_ours=is_storage_ours)
    assert [location.name for location in beside] == ([] if why_not else ["theirs.py"])
    assert ("theirs.py" in workspace(home).read_text()) == (why_not is None)
    if why_not:
        (sentence,) = said
        assert sentence.startswith(f"The code locations of workspace.d (theirs.py) are not served: {why_not}")


def test_a_home_without_the_folder_has_none(tmp_path: Path) -> None:
    assert read(tmp_path) == ([], [])
