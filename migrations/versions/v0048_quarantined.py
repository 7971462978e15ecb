"""The state of a value that is not believed is called quarantined."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0048"
down_revision = "0047"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0048_quarantined.sql").read_text())
