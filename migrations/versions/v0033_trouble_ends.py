"""Who waits in trouble is told so and comes back: whatever the trouble was, and for whomever a pair was judged last."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0033_trouble_ends.sql").read_text())
