"""Messages about alerts go before others."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0060"
down_revision = "0059"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0060_told_first.sql").read_text())
