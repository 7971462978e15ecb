"""Claims always move: what cannot be called hides nothing."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0025_claims_move.sql").read_text())
