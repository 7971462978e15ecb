"""Nothing is skipped silently: who belongs to a universe is one view, and what producers leave out is counted."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0032_nothing_skipped.sql").read_text())
