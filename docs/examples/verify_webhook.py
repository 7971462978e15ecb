"""Tells a genuine webhook of the pipeline from a forged one. See docs/alerts.md, "Verify a webhook"."""

import hashlib
import hmac
import time
from collections.abc import Mapping


def is_genuine(secret: str, headers: Mapping[str, str], body: bytes) -> bool:
    timestamp, signature = headers.get("Pricing-Timestamp", ""), headers.get("Pricing-Signature", "")
    if not timestamp.isdecimal() or len(timestamp) > 15 or abs(time.time() - int(timestamp)) > 300:
        return False
    digest = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"v1={digest}".encode(), signature.encode())
