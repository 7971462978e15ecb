"""What a data type consists of: prices, documents, inventory or commodities."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0068"
down_revision = "0067"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0068_contents.sql").read_text())
