"""What is kept so that work goes on when the database's clock is set."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0026_clock_steps.sql").read_text())
