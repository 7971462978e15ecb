"""Several drains at once, and one bound on the calls of all of them."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0076"
down_revision = "0075"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0076_several_drains.sql").read_text())
