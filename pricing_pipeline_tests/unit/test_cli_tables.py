"""Tables in a pipe fit 80 columns where they can do without some of their columns."""

from __future__ import annotations

import re

import pytest

from pricing_pipeline.cli.output import print_table

ROWS = [(17, "failed", "AAPL", "twelvedata", "because " * 40), (18, "failed", "MSFT", "twelvedata", "short")]
HEADINGS = ["id", "status", "symbol", "provider", "why"]


def test_a8_a_long_column_is_cut_to_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HEADINGS, ROWS, right=["id"], spare=["provider"], long="why")
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 80
    assert "provider" in printed[0]
    assert printed[2].endswith("…")
    assert "short" in printed[3]


def test_a8_columns_that_can_be_spared_go_first_to_last(capsys: pytest.CaptureFixture[str]) -> None:
    wide = [(*row[:3], "p" * 60, row[4]) for row in ROWS]
    print_table(HEADINGS, wide, right=["id"], spare=["provider", "symbol"], long="why")
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 80
    assert "provider" not in printed[0]
    assert "symbol" in printed[0]


def test_a8_a_table_that_fits_is_left_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HEADINGS, ROWS[1:], spare=["provider"], long="why")
    assert "twelvedata" in capsys.readouterr().out


def test_a8_without_columns_to_spare_nothing_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HEADINGS, ROWS)
    assert "because because " * 15 in capsys.readouterr().out


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a8_no_line_of_a_table_ends_with_a_space(
    is_terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "100")
    print_table(["id", "status"], [(1, "failed"), (2, ""), (3, "x "), (4, "ok")])
    printed = capsys.readouterr().out
    assert ("\x1b[" in printed) == is_terminal
    assert re.sub(r"\x1b\[[0-9;]*m", "", printed) == ("id  status\n──────────\n1   failed\n2\n3   x\n4   ok\n")


def test_f6_a_line_end_in_a_cell_makes_no_row(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["user", "symbol"], [["ann\nbob", "AAPL"]])
    assert capsys.readouterr().out.splitlines()[2:] == ["ann\\nbob  AAPL"]
