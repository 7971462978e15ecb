"""Positions of two logs of live streams are alike; their ids are not."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0067"
down_revision = "0066"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0067_stream_log.sql").read_text())
