"""Messages wait in a line for each recipient; a price alert stores whether it has looked at the first price."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0085"
down_revision = "0084"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0085_messages_by_recipient.sql").read_text())
