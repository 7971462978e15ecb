"""What a pair's source said when is known beside when it was confirmed; the rules of TTLs take other arguments."""

from pathlib import Path

from alembic import op

from pricing_pipeline.db.migrate import run_script

revision = "0085"
down_revision = "0084"


def upgrade() -> None:
    run_script(op.get_bind(), Path(__file__).with_name("0085_source_old.sql").read_text())
