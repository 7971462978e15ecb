"""What tests need to ask servers of this machine over HTTP."""

from __future__ import annotations

import ssl

NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For `verify` of a client that asks without TLS: to read whom to trust takes each client 30 ms."""
