"""Days of which only unreadable values came can be asked for again."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0036_days_unread.sql").read_text())
