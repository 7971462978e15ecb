"""UEX, in a database that has providers already."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0074"
down_revision = "0073"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0074_uex.sql").read_text())
