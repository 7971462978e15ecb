"""When a token of the HTTP API ends by itself."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0062"
down_revision = "0061"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0062_token_expiry.sql").read_text())
