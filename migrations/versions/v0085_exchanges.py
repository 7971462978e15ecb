"""One table of exchanges, corrections to their trading days, and what two sources say differently."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0085"
down_revision = "0084"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0085_exchanges.sql").read_text())
