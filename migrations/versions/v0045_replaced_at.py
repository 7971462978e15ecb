"""When an API key was replaced by another is called so."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0045"
down_revision = "0044"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0045_replaced_at.sql").read_text())
