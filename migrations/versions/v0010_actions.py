"""Corporate actions, and what was believed when."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0010_actions.sql").read_text())
