"""Room on the pages of the queue."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0014_room_for_claims.sql").read_text())
