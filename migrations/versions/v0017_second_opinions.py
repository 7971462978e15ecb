"""What a second provider says by itself, and what people enter of splits and dividends."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0017_second_opinions.sql").read_text())
