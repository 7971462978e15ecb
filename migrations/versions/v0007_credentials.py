"""Encrypted credentials of providers."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0007_credentials.sql").read_text())
