"""A call may take several requests: each after the first is a call of its own."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0069"
down_revision = "0068"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0069_pages.sql").read_text())
