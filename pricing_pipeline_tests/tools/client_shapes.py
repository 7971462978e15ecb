"""The client's copy of the shape of a price. `make pages` writes it, and a test compares it with its source."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "pricing_pipeline/domain/prices.py"
COPY = ROOT / "client/pricing_client/prices.py"
_HEAD = "# A copy of pricing_pipeline/domain/prices.py, which `make pages` writes.\n"


def written() -> str:
    """The copy as it should be."""
    return _HEAD + SOURCE.read_text()


if __name__ == "__main__":
    COPY.write_text(written())
