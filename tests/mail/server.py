"""A mail server for tests: takes letters for the user me@acme.com with the password sésame. Prints its port, then the receiver of each letter.

    server.py tls|starttls|plain

The current directory has `tls.crt` and `tls.key`.
"""

import asyncio
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult


class Printer:
    async def handle_DATA(self, server, session, envelope):
        print(*envelope.rcpt_tos, flush=True)
        return "250 taken"


def authenticate(server, session, envelope, mechanism, data):
    is_right = (data.login, data.password) == ("me@acme.com".encode(), "sésame".encode())
    return AuthResult(success=is_right, handled=is_right)


async def serve(kind):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("tls.crt", "tls.key")
    options = {"authenticator": authenticate, "auth_required": True, "auth_require_tls": kind == "starttls"}
    if kind == "starttls":
        options["tls_context"], options["require_starttls"] = context, True
    server = await asyncio.get_running_loop().create_server(
        lambda: SMTP(Printer(), **options), "127.0.0.1", 0, ssl=context if kind == "tls" else None
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.sleep(120)


asyncio.run(serve(sys.argv[1]))
