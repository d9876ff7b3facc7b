"""Commands, replies and errors of seqsvr's RESP port, without input and output."""
import random
import re
import time
from dataclasses import dataclass
from typing import Optional

MAX_COUNT = 1_048_576
MAX_SEQ = 2**53 - 1
LONGEST_WAIT_MS = 50_000  # of one wait at a router, which allows 55 s


class SeqError(Exception):
    """An error of seqsvr, or of this library on the way to it.

    code is a name of ErrorCode in error.proto, or DISCONNECTED, CLOSED or UNIMPLEMENTED. If retryable, the
    same call may succeed later. first and count are of ID_CONFLICT: the numbers that the request id has got.
    """

    def __init__(self, code, message, retryable=False):
        super().__init__(message)
        self.code, self.retryable, self.first, self.count = code, retryable, None, None

    def __str__(self):
        text = super().__str__()
        return text if text.startswith(self.code) else f"{self.code}: {text}"


@dataclass(frozen=True)
class Range:
    """The numbers first to last, both included. A Range of a batch that has an error has no numbers."""

    first: int
    last: int
    replayed: bool = False  # the request id had these numbers before
    error: Optional[SeqError] = None


@dataclass(frozen=True)
class Ask:
    """A key of next_batch with options."""

    key: object
    count: int = 1
    request_id: Optional[str] = None
    first_sent_ms: Optional[int] = None


@dataclass(frozen=True)
class Ticket:
    """Numbers that hold the mark of their key until done, cancel, or the end of their life."""

    key: object
    first: int
    last: int
    id: int
    life_ms: int
    deadline_ms: int  # its end by this machine's clock, in ms since 1970
    replayed: bool


@dataclass(frozen=True)
class Mark:
    """Up to seq nothing is missing. If it is not known, it will be in known_in_ms."""

    known: bool
    seq: int
    fence: int
    last: int  # at or above the last number that was taken
    known_in_ms: int
    after: int = 0  # of watch: the mark that was yielded before


def bad(message):
    return SeqError("BAD_ARGUMENT", message)


def whole(what, n, least, most):
    if type(n) is not int or not least <= n <= most:
        raise bad(f"{what} is {n!r}, expected {least} to {most}")
    return n


def command(*words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        text = word if type(word) is bytes else str(word).encode()
        out.append(b"$%d\r\n%b\r\n" % (len(text), text))
    return b"".join(out)


_NAMED = re.compile(r"([A-Z][A-Z_]+): ")
_HAD = re.compile(r"it has got (\d+) from (\d+)")
_WORDS = {"NOAUTH": "UNAUTHENTICATED", "WRONGPASS": "UNAUTHENTICATED", "NOPERM": "FORBIDDEN"}


def fault_of(text):
    """The error of "TRYAGAIN NO_QUORUM: text", "ERR OVERFLOW: text", or of a text without a code."""
    word, _, rest = text.partition(" ")
    named = _NAMED.match(rest)
    if named:
        code = named.group(1)
    else:
        code = _WORDS.get(word) or ("UNIMPLEMENTED" if rest.startswith("unknown command") else "BAD_ARGUMENT")
    err = SeqError(code, rest, word == "TRYAGAIN")
    had = _HAD.search(rest) if code == "ID_CONFLICT" else None
    if had:
        err.count, err.first = int(had.group(1)), int(had.group(2))
    return err


class _Missing(Exception):
    pass


class Replies:
    """Reads replies from pieces of bytes. No text of seqsvr's replies has a line end in it."""

    def __init__(self):
        self.rest = b""

    def read(self, data):
        """The replies that are complete."""
        lines = (self.rest + data if self.rest else data).split(b"\r\n")
        tail = lines.pop()
        out, at, end = [], 0, len(lines)
        try:
            while at < end:
                line = lines[at]
                if line[:1] == b":":
                    out.append(int(line[1:]))
                    at += 1
                else:
                    value, at = self._value(lines, at)
                    out.append(value)
            self.rest = tail
        except _Missing:
            self.rest = b"\r\n".join(lines[at:] + [tail])
        return out

    def _value(self, lines, at):
        if at == len(lines):
            raise _Missing
        line = lines[at]
        kind, text = line[:1], line[1:]
        at += 1
        if kind == b":":
            return int(text), at
        if kind == b"+":
            return text.decode(), at
        if kind == b"-":
            return fault_of(text.decode()), at
        if text == b"-1" and kind in b"$*":
            return None, at
        if kind == b"$":
            if at == len(lines):
                raise _Missing
            if len(lines[at]) != int(text):
                raise SeqError("DISCONNECTED", "a text of another length than announced", True)
            return lines[at].decode(), at + 1
        if kind == b"*":
            values = []
            for _ in range(int(text)):
                value, at = self._value(lines, at)
                values.append(value)
            return values, at
        raise SeqError("DISCONNECTED", f"not a reply of RESP: {line[:40]!r}", True)


def mark_of(reply):
    seq, fence, last, known_in_ms = reply[:4]
    return Mark(seq is not None, seq or 0, fence or 0, last, known_in_ms)


def pause_of(n):
    """Seconds before the next attempt after n pauses."""
    return min(1.0, 0.01 * 2 ** min(n, 10)) * random.uniform(0.5, 1)


def closed():
    return SeqError("CLOSED", "the client is closed")


class Calls:
    """The methods of both clients. _call sends a command and gives what read makes of its reply; _all does so with
    many, and gives an error in place of a value."""

    def __init__(self, addrs, space, timeout, connect_timeout, silence_timeout, max_queue, max_waits, token, ssl):
        self._addrs = [self._parse(a) for a in addrs]
        if not self._addrs or type(addrs) is str:
            raise bad(f"addrs is {addrs!r}, expected a list of host:port")
        if ssl is True:
            import ssl as tls

            ssl = tls.create_default_context()
        self._token, self._ssl = token, ssl or None
        self._timeout, self._connect_timeout, self._silence = timeout, connect_timeout, silence_timeout
        self._max_queue, self._max_waits = max_queue, max_waits
        self._prefix = f"seq:{space}/".encode() if space else b"seq:"
        self._at = self._wait_at = random.randrange(len(self._addrs))  # so that clients divide among routers
        self._closed, self._waits = False, 0
        self.stats = {"commands": 0, "writes": 0, "retries": 0, "connections": 0}

    @staticmethod
    def _parse(addr):
        host, _, port = addr.rpartition(":")
        if not host or not port.isdigit() or int(port) > 65535:
            raise bad(f"address {addr!r}, expected host:port")
        return host.strip("[]"), int(port)

    @property
    def address(self):
        """The address in use."""
        host, port = self._addrs[self._at]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _name(self, key):
        """The key as RESP has it. A string stands in quotes, so that it is never taken for a UID."""
        prefix = self._prefix
        if type(key) is tuple and len(key) == 2 and type(key[0]) is str:
            space, key = key
            prefix = f"seq:{space}/".encode() if space else b"seq:"
        if type(key) is int and 0 <= key < 2**64:
            return b"%b%d" % (prefix, key)
        if type(key) is str:
            return b'%b"%b"' % (prefix, key.encode())
        raise bad(f"key is {key!r}, expected a uid of 0 to 2^64-1, a str, or a tuple of a space and either")

    @staticmethod
    def _request(request_id, first_sent_ms):
        if type(request_id) is not str:
            raise bad(f"request_id is {request_id!r}, expected a str of 1 to 64 bytes")
        return "ID", request_id, "SENT", int(time.time() * 1000) if first_sent_ms is None else first_sent_ms

    def _taking(self, key, count, request_id, first_sent_ms):
        name = self._name(key)
        whole("count", count, 1, MAX_COUNT)
        if request_id is not None:
            text = command(b"SEQ.NEXT", name, b"COUNT", count, *self._request(request_id, first_sent_ms))
            return text, lambda got: Range(got[0], got[1], got[2] == 1)
        text = command(b"INCR", name) if count == 1 else command(b"INCRBY", name, count)
        return text, lambda last: Range(last - count + 1, last)

    def next(self, key, *, request_id=None, first_sent_ms=None, timeout=None):
        if type(key) is int and request_id is None and 0 <= key < 2**64:
            name = b"%b%d" % (self._prefix, key)  # as _name has it
            return self._call(b"*2\r\n$4\r\nINCR\r\n$%d\r\n%b\r\n" % (len(name), name), None, timeout)
        text, read = self._taking(key, 1, request_id, first_sent_ms)
        return self._call(text, lambda got: read(got).first, timeout)

    def take(self, key, count=1, *, request_id=None, first_sent_ms=None, timeout=None):
        return self._call(*self._taking(key, count, request_id, first_sent_ms), timeout)

    def next_batch(self, asks, *, timeout=None):
        all_asks = [ask if type(ask) is Ask else Ask(ask) for ask in asks]
        calls = [self._taking(a.key, a.count, a.request_id, a.first_sent_ms) for a in all_asks]
        return self._all(calls, timeout, lambda err: Range(0, 0, False, err))

    def lookup(self, key, request_id, *, timeout=None):
        text = command(b"SEQ.LOOKUP", self._name(key), b"ID", request_id)
        return self._call(text, lambda got: got and Range(got[0], got[1], True), timeout)

    def current(self, key, *, timeout=None):
        return self._call(command(b"GET", self._name(key)), lambda got: int(got or 0), timeout)

    def raise_to(self, key, at_least, *, timeout=None):
        return self._call(command(b"SEQ.RAISE", self._name(key), whole("at_least", at_least, 0, MAX_SEQ)), None, timeout)

    def generate(self, namespace="default", count=1, *, timeout=None):
        one = command(b"INCR", f"snowflake:{namespace}"), int
        return self._all([one] * whole("count", count, 1, 10_000), timeout, None)

    def segment(self, tag, count=1, *, timeout=None):
        text = command(b"INCRBY", f"tag:{tag}", whole("count", count, 1, MAX_COUNT))
        return self._call(text, lambda last: Range(last - count + 1, last), timeout)

    def open(self, key, count=1, *, life_ms=None, request_id=None, first_sent_ms=None, timeout=None):
        words = [b"SEQ.OPEN", self._name(key), b"COUNT", whole("count", count, 1, MAX_COUNT)]
        if life_ms is not None:
            words += [b"LIFE", whole("life_ms", life_ms, 1, 300_000)]
        if request_id is not None:
            words += self._request(request_id, first_sent_ms)
        begun = int(time.time() * 1000)
        return self._call(command(*words), lambda got: Ticket(key, got[0], got[1], got[2], got[3], begun + got[3], got[4] == 1), timeout)

    def done(self, ticket, *, timeout=None):
        return self._call(command(b"SEQ.DONE", self._name(ticket.key), ticket.first, ticket.id), lambda _: None, timeout)

    def cancel(self, ticket, *, timeout=None):
        return self._call(command(b"SEQ.CANCEL", self._name(ticket.key), ticket.first, ticket.id), lambda _: None, timeout)

    def mark(self, key, *, timeout=None):
        return self._call(command(b"SEQ.MARK", self._name(key)), lambda got: mark_of(got[0]), timeout)

    def _waiting(self, name, after, until):
        """The command of one wait, and its seconds."""
        ms = min(max(0, int((until - time.monotonic()) * 1000)), LONGEST_WAIT_MS)
        return command(b"SEQ.WAIT", name, after, ms), ms / 1000

    @staticmethod
    def _waited(mark, after, until):
        """Whether a wait is over, and else the seconds before the next."""
        left = until - time.monotonic()
        if mark.known and mark.seq > after or left <= 0:
            return True, 0
        return False, 0 if mark.known else min(left, mark.known_in_ms / 1000)

    def _enter_wait(self):
        if self._closed:
            raise closed()
        if self._waits >= self._max_waits:
            raise SeqError("OVERLOADED", f"{self._waits} waits have a connection each", True)
        self._waits += 1
