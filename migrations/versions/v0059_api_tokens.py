"""Tokens of the HTTP API."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0059"
down_revision = "0058"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0059_api_tokens.sql").read_text())
