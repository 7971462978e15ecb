"""A change of providers and routes reloads the code location, as one of a data type does."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0084"
down_revision = "0083"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0084_reload_for_providers.sql").read_text())
