"""Providers that are declared instead of coded."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0073"
down_revision = "0072"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0073_provider_declarations.sql").read_text())
