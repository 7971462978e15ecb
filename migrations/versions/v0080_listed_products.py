"""Products tell whether their provider still has them."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0080"
down_revision = "0079"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0080_listed_products.sql").read_text())
