"""Price alerts of users, over HTTP."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0066"
down_revision = "0065"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0066_alerts_of_users.sql").read_text())
