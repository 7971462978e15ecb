"""What stops a provider, asked once for many pairs that are explained."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0065"
down_revision = "0064"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0065_stops.sql").read_text())
