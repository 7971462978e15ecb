"""Claims under a snapshot that is held open."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0020_going_on.sql").read_text())
