"""One staleness check for all data types."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0015_one_check.sql").read_text())
