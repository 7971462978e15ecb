"""Files of history are noted before they are in their place, and read only if they are known."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0079"
down_revision = "0078"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0079_coming_files.sql").read_text())
