"""The past keeps when a version of the game was played that has come again."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0083"
down_revision = "0082"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0083_earlier_live_times.sql").read_text())
