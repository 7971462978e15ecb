"""No session stops others: what clients ask for is an inbox, and whose turn it is are rows."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0028_nobodys_session.sql").read_text())
