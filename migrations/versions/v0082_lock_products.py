"""What locks products is no longer called a turn."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0082"
down_revision = "0081"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0082_lock_products.sql").read_text())
