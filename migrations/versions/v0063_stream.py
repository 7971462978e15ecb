"""What live streams tell."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0063"
down_revision = "0062"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0063_stream.sql").read_text())
