"""Price alerts, and new prices that they are to look at."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0055"
down_revision = "0054"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0055_price_alerts.sql").read_text())
