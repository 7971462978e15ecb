"""A reader counts as a viewer until it is served."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0040_readers.sql").read_text())
