"""A table of what providers have shown of their limits."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0051"
down_revision = "0050"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0051_shown_limits.sql").read_text())
