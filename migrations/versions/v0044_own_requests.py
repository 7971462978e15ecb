"""Who reads sees no requests that name nobody."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0044_own_requests.sql").read_text())
