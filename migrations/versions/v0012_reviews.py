"""What people decide about held values, and how long prices are kept."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0012_reviews.sql").read_text())
