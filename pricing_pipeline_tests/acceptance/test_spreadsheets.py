"""E9: the recipe for spreadsheets, done with LibreOffice."""

from __future__ import annotations

import re
import shutil
import subprocess
from decimal import Context, Decimal
from pathlib import Path

import httpx
import pytest

from pricing_pipeline_tests.fixtures.core import Core
from pricing_pipeline_tests.support.api_server import RunningApi
from pricing_pipeline_tests.support.patience import PATIENCE
from pricing_pipeline_tests.support.recipes import CLOSES, addressed, block, feed_of_recipes, urls

pytestmark = pytest.mark.usefixtures("still")


@pytest.mark.parametrize("decimal", ["point", "comma"])
def test_e9_spreadsheets(api: RunningApi, core: Core, tmp_path: Path, decimal: str) -> None:
    """LibreOffice takes days as days and prices as numbers, as its import of text does, and computes with them."""
    program = shutil.which("soffice")
    if program is None:
        pytest.skip("LibreOffice is not installed: apt-get install libreoffice-calc-nogui")
    now, history = urls(addressed(block("spreadsheets", "text"), api, feed_of_recipes(api, core)))
    between, language = (",", 1033) if decimal == "point" else (";", 1031)  # of the United States, and of Germany
    for name, url, column, formulas in (
        ("now", now, "price", ("={0}2*12345.678",)),
        ("history", history.replace("2026-01-01", "2026-10-01"), "close", ("=SUM({0}2:{0}3)", "={0}2*{0}3")),
    ):
        content = httpx.get(f"{url}&decimal={decimal}").text
        place = content.splitlines()[0].split(between).index(column)
        below = (f"{between * place}{formula.format('ABCDEFGHIJ'[place])}\r\n" for formula in formulas)
        (tmp_path / f"{name}.csv").write_text(content + "".join(below), newline="")
    subprocess.run(
        [
            *(program, "--headless", f"-env:UserInstallation=file://{tmp_path}/profile"),
            f"--infilter=CSV:{ord(between)},34,76,1,,{language},false,true,false,false,false,0,true",  # with formulas
            *("--convert-to", "fods", "--outdir", tmp_path, tmp_path / "now.csv", tmp_path / "history.csv"),
        ],
        check=True,
        capture_output=True,
        timeout=4 * PATIENCE,
    )

    def cells(name: str) -> tuple[set[str], list[Decimal]]:
        """Days and numbers, and the results of formulas."""
        text = (tmp_path / f"{name}.fods").read_text()
        results = re.findall(r'table:formula="[^"]+" office:value-type="float" office:value="([^"]+)"', text)
        return set(re.findall(r'office:(?:date-)?value="([^"]+)"', text)), [
            digits(Decimal(result)) for result in results
        ]

    digits = Context(prec=15).create_decimal  # as many as a spreadsheet keeps
    values, results = cells("now")
    assert "146.55" in values
    assert results == [digits(Decimal("146.55") * Decimal("12345.678"))]
    values, results = cells("history")
    assert {"411.23", "1409.4", "2026-10-01", "2026-10-02"} <= values
    first, second = (Decimal(close) for _, close in CLOSES)
    assert results == [digits(first + second), digits(first * second)]
