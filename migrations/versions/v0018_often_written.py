"""What is done thousands of times a second does less."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0018_often_written.sql").read_text())
