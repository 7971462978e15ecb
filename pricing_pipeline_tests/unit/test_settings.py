"""Where settings come from: the environment, a file `.env` beside it, and what a home was made for."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from pricing_pipeline.errors import SettingsError
from pricing_pipeline.settings import keep_kind, load_settings, load_settings_as_guest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, and an environment in which nothing is set; both as before in the end."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PRICING_")}
    monkeypatch.setattr(os, "environ", kept)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def home_variable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A HOME that is expanded where no shell has done so."""
    monkeypatch.setitem(os.environ, "HOME", str(folder / "me"))
    return folder / "me"


def test_c3_a_file_env_adds_to_the_environment_which_goes_before_it(folder: Path) -> None:
    (folder / ".env").write_text(
        "# a comment\nexport PRICING_WEB_PORT=3001\nPRICING_SANDBOX_PORT='8101' # why\nOTHER=1\n"
        "PRICING_TWELVEDATA_API_KEY='a${b}$c'\nPRICING_DATABASE_URL=\n"
    )
    os.environ |= {"PRICING_WEB_PORT": "3002", "PRICING_SANDBOX_PORT": ""}
    settings = load_settings()
    assert (settings.web_port, settings.sandbox_port) == (3002, 8101)
    assert settings.twelvedata_api_key is not None
    assert settings.twelvedata_api_key.get_secret_value() == "a${b}$c"
    assert settings.database_url is None
    assert "OTHER" not in os.environ


@pytest.mark.parametrize(("home", "is_read"), [("one", True), ("./one", True), ("two", False), (None, True)])
def test_c3_a_file_env_that_names_a_home_is_about_no_other(folder: Path, home: str | None, is_read: bool) -> None:
    """Its database and its kind of prices are those of that home."""
    (folder / ".env").write_text("PRICING_HOME=one\nPRICING_SANDBOX=false\nPRICING_WEB_PORT=3001\n")
    if home is not None:
        os.environ["PRICING_HOME"] = home
    settings = load_settings()
    assert settings.home == Path(home or "one")
    assert (settings.sandbox, settings.web_port) == ((False, 3001) if is_read else (True, 3000))


@pytest.mark.parametrize(
    "line",
    [
        b"PRICING_SANDBOX",
        b"export PRICING_SANDBOX",
        b'PRICING_MASTER_KEY="secret',
        b"PRICING_MASTER_KEY secret=3",
        b"PRICING_MASTER_KEY=secret\xff",
    ],
)
def test_c3_a_line_that_cannot_be_read_is_refused_without_being_shown(folder: Path, line: bytes) -> None:
    (folder / ".env").write_bytes(b"PRICING_WEB_PORT=3001\n\n" + line + b"\n")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert f"line 3 of {folder / '.env'}" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_c3_what_is_somebody_elses_in_the_file_is_left_alone(folder: Path) -> None:
    (folder / ".env").write_bytes(
        b"# caf\xe9\nexport GREETING='hello\nPRICING_SANBOX=true\n'\nexport GREETING\nsand box\n=3\n"
        b'OPEN="quote\nPRICING_WEB_PORT=3001\nNAME=\xff\n'
    )
    assert load_settings().web_port == 3001
    assert {"GREETING", "OPEN", "NAME"} & os.environ.keys() == set()


def test_c3_a_file_that_cannot_be_read_is_refused(folder: Path) -> None:
    (folder / ".env").symlink_to("/proc/self/mem")  # reads as an input/output error, also for root
    with pytest.raises(SettingsError, match="cannot be read: Input/output error"):
        load_settings()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_c3_a_file_of_another_user_is_refused_unless_it_says_nothing_of_ours(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whose folder one is in, decides no setting."""
    file = folder / ".env"
    file.write_text("PRICING_WEB_PORT=3001\n")
    os.chown(file, 65534, 65534)
    with pytest.raises(SettingsError, match=rf"{file} holds settings, and belongs to nobody, and this runs as root"):
        load_settings()
    assert load_settings_as_guest().web_port == 3000
    assert "belongs to nobody" in caplog.text
    file.write_text("WEB_PORT=3001\n")
    assert load_settings().web_port == 3000


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a link away")
def test_c3_a_link_of_another_user_is_refused(folder: Path) -> None:
    """It would lead to settings of ours that are meant for another folder."""
    (folder / "elsewhere").write_text("PRICING_WEB_PORT=3001\n")
    (folder / ".env").symlink_to(folder / "elsewhere")
    assert load_settings().web_port == 3001
    os.lchown(folder / ".env", 65534, 65534)
    os.environ.pop("PRICING_WEB_PORT")
    with pytest.raises(SettingsError, match=r"\.env is a link of another user's"):
        load_settings()


def test_c3_a_file_that_all_may_write_is_refused_and_one_that_a_group_may_write_is_closed_to_it(
    folder: Path,
) -> None:
    file = folder / ".env"
    file.write_text("PRICING_WEB_PORT=3001\n")
    file.chmod(0o666)
    with pytest.raises(SettingsError, match=rf"may be written by others: run `chmod go-w '{file}'`"):
        load_settings()
    file.chmod(0o664)  # as many systems make files
    assert load_settings().web_port == 3001
    assert file.stat().st_mode & 0o777 == 0o644


def test_c3_g7_what_may_be_a_strangers_is_warned_of_once_where_dagster_loads_us(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / ".env").write_text("export PRICING_SERVICE\nPRICING_TEAM=ours\nPRICING_WEB_PORT=3001\n")
    os.environ["PRICING_SERVICE_URL"] = "http://example.org"
    for _ in range(2):
        assert load_settings_as_guest().web_port == 3001
    line, *unknown = sorted(record.getMessage() for record in caplog.records)
    assert line.startswith(f"line 1 of {folder / '.env'} cannot be read")
    assert [sentence.split(".")[0] for sentence in unknown] == [
        "there is no setting PRICING_SERVICE_URL",
        "there is no setting PRICING_TEAM",
    ]
    with pytest.raises(SettingsError):
        load_settings()


@pytest.mark.parametrize("variable", [("PRICING_WEB_PORT", "soon"), ("pricing_home", "/nowhere")])
def test_c3_g7_what_is_ours_beyond_doubt_is_refused_there_too(folder: Path, variable: tuple[str, str]) -> None:
    os.environ[variable[0]] = variable[1]
    with pytest.raises(SettingsError, match=variable[0]):
        load_settings_as_guest()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("PRICING_SANBOX", "PRICING_SANDBOX?"),
        ("PRICING_HOMES", "PRICING_HOME?"),
        ("pricing_home", "PRICING_HOME?"),
        ("PRICING_XYZZY", ""),
    ],
)
@pytest.mark.parametrize("is_in_file", [True, False])
def test_c3_a_mistyped_setting_is_refused(folder: Path, name: str, meant: str, is_in_file: bool) -> None:
    if is_in_file:
        (folder / ".env").write_text(f"{name}=1\n")
    else:
        os.environ[name] = "1"
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert f"there is no setting {name}." in str(caught.value)
    assert meant in str(caught.value)
    assert (str(folder / ".env") in str(caught.value)) is is_in_file


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a b", "a b"),
        ("'a b'", "a b"),
        ("~/x", "{me}/x"),
        ("$HOME/x", "{me}/x"),
        ("~root/x", f"{pwd.getpwuid(0).pw_dir}/x"),
        ("", ".pricing"),
    ],
)
def test_c3_a_home_is_the_folder_that_was_meant(folder: Path, home_variable: Path, written: str, meant: str) -> None:
    (folder / ".env").write_text(f"PRICING_HOME={written}\n")
    assert load_settings().home == Path(meant.format(me=home_variable))


@pytest.mark.parametrize("written", ["~nobody-of-this-name/x", "$NO_SUCH_VARIABLE/x"])
def test_c3_a_home_that_cannot_be_meant_is_refused(folder: Path, written: str) -> None:
    os.environ["PRICING_HOME"] = written
    with pytest.raises(SettingsError, match="PRICING_HOME=") as caught:
        load_settings()
    assert written in str(caught.value)


@pytest.mark.parametrize(("made_for", "asked_for"), [("true", "false"), ("false", "true")])
def test_c3_a_home_keeps_to_the_sandbox_or_to_real_providers(folder: Path, made_for: str, asked_for: str) -> None:
    home = folder / ".pricing"
    home.mkdir()
    os.environ["PRICING_SANDBOX"] = made_for
    first = load_settings()
    keep_kind(first)
    assert load_settings() == first
    # Anyone who says nothing gets what the home is for.
    del os.environ["PRICING_SANDBOX"]
    assert load_settings().sandbox is first.sandbox
    (folder / ".env").write_text(f"PRICING_SANDBOX={asked_for}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    sentence = str(caught.value)
    assert [word for word in (str(home), "sandbox", "real providers", "PRICING_HOME") if word not in sentence] == []
    # A start that had read its settings before another one decided is refused, too.
    with pytest.raises(SettingsError, match="made for the"):
        keep_kind(first.model_copy(update={"sandbox": not first.sandbox}))
    os.environ["PRICING_HOME"] = str(folder / "another")
    assert load_settings().sandbox is not first.sandbox


def test_c3_what_a_home_was_made_for_is_never_guessed(folder: Path) -> None:
    (folder / ".pricing").mkdir()
    (folder / ".pricing" / "prices-from").write_text("")
    with pytest.raises(SettingsError, match="is damaged"):
        load_settings()


# --- User-Agent ----------------------------------------------------------------------------------


def test_c3_the_user_agent_is_a_setting() -> None:
    assert load_settings().user_agent is None
    os.environ["PRICING_USER_AGENT"] = "prices-of-ann/1.0 (ann@example.com)"
    assert load_settings().user_agent == "prices-of-ann/1.0 (ann@example.com)"


@pytest.mark.parametrize("agent", ["a" * 201, "a\nX-Other: b", "a\rb", "a\tb", " agent7", "préis", "a\x7fb", "a\x00b"])
def test_c3_a_user_agent_that_no_header_can_carry_is_refused(agent: str) -> None:
    os.environ["PRICING_USER_AGENT"] = agent
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert str(caught.value).startswith("PRICING_USER_AGENT: ")
    assert "one line of at most 200 printable ASCII characters" in str(caught.value)
    assert agent not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TWELVEDATA_API_KEY", "canary-0123"),
        ("FMP_API_KEYS", "second=canary-0123"),
        ("MASTER_KEY", "main:canary-0123"),
        ("UI_TOKEN", "canary-0123"),
        ("DATABASE_URL", "postgresql://ann:canary%2D0123@127.0.0.1/x"),
        ("OWNER_URL", "postgresql://127.0.0.1/x?password=canary-0123"),
    ],
)
def test_c3_a_user_agent_with_a_secret_is_refused_without_being_shown(name: str, value: str) -> None:
    os.environ |= {f"PRICING_{name}": value, "PRICING_USER_AGENT": "prices (CANARY-0123)"}
    with pytest.raises(SettingsError, match=f"PRICING_USER_AGENT contains a secret of PRICING_{name}") as caught:
        load_settings()
    assert "canary-0123" not in str(caught.value).lower()
