"""The whole schema, as the first version has it."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0045"
down_revision = None


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0045_baseline.sql").read_text())
