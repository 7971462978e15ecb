"""Documents with history."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0006_documents.sql").read_text())
