"""The whole life of a task: extend, retry and cancel by hand, wake-up."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0002_lifecycle.sql").read_text())
