"""A database belongs to the sandbox or to the real providers."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0078"
down_revision = "0077"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0078_prices_from.sql").read_text())
