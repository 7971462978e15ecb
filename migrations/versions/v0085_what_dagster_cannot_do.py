"""What the daemon notes of Dagster: a code location that does not load, sensors that do not work."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0085"
down_revision = "0084"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0085_what_dagster_cannot_do.sql").read_text())
