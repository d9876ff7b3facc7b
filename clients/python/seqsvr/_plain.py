"""The client for threads."""
import socket
import threading
import time
from collections import deque
from dataclasses import replace

from ._protocol import LONGEST_WAIT_MS, MAX_SEQ, Calls, Replies, SeqError, closed, command, mark_of, pause_of, whole


class _Group:
    """The calls that one thread waits for. lock is released with the last answer, or with the lead."""

    __slots__ = ("left", "lead", "gone", "lock")

    def __init__(self, left):
        self.left, self.lead, self.gone, self.lock = left, False, False, threading.Lock()
        self.lock.acquire()


class _Call:
    __slots__ = ("text", "group", "value", "answered")

    def __init__(self, text, group):
        self.text, self.group, self.value, self.answered = text, group, None, False

    def answer(self, value):
        group = self.group
        self.value, self.answered = value, True
        group.left -= 1
        if group.left == 0 and not group.lead:
            group.lock.release()


class _Line:
    """A connection, which one thread uses at a time."""

    def __init__(self, client, at, seconds):
        host, port = client._addrs[at]
        self.address, self.replies, self.calls, self.heard = f"{host}:{port}", Replies(), deque(), time.monotonic()
        client.stats["connections"] += 1
        try:
            self.socket = socket.create_connection((host, port), seconds)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if client._ssl:
                self.socket = client._ssl.wrap_socket(self.socket, server_hostname=host)
            if client._token:
                self.socket.sendall(command(b"AUTH", client._token))
                answer = []
                while not answer:
                    answer = self.read()
                if isinstance(answer[0], SeqError):
                    raise answer[0]
        except OSError as err:
            raise SeqError("DISCONNECTED", f"{self.address}: {err}", True) from err

    def read(self):
        """The replies that came; none if nothing did within the socket's time."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise SeqError("DISCONNECTED", f"{self.address} closed the connection", True)
        self.heard = time.monotonic()
        return self.replies.read(data)

    def end(self):
        """Wakes the thread that reads."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self):
        self.socket.close()


class Client(Calls):
    """A client that threads share. The first thread that calls sends and reads for all; the calls that come meanwhile
    travel together."""

    def __init__(self, addrs=("127.0.0.1:6379",), *, token=None, ssl=None, space="", timeout=10.0, connect_timeout=3.0, silence_timeout=5.0,
                 max_queue=100_000, max_waits=100):
        super().__init__(addrs, space, timeout, connect_timeout, silence_timeout, max_queue, max_waits, token, ssl)
        self._mutex = threading.Lock()  # guards all below
        self._line, self._leading, self._queue, self._open_waits, self._failures, self._last = None, False, deque(), set(), 0, None

    def _call(self, text, read, timeout):
        value = self._run([(text, read)], timeout)[0]
        if isinstance(value, SeqError):
            raise value
        return value

    def _all(self, calls, timeout, failed):
        values = self._run(calls, timeout)
        for i, value in enumerate(values):
            if isinstance(value, SeqError):
                if failed is None:
                    raise value
                values[i] = failed(value)
        return values

    def _run(self, wanted, timeout):
        """Sends commands until each has an answer that is worth no other attempt, or until the deadline."""
        begun = time.monotonic()
        deadline = begun + (self._timeout if timeout is None else timeout)
        values, open_calls, attempt = [None] * len(wanted), range(len(wanted)), 0
        while open_calls:
            calls = self._exchange([wanted[i][0] for i in open_calls], deadline)
            again = []
            for i, call in zip(open_calls, calls):
                read, value = wanted[i][1], call.value
                if not call.answered:
                    why = f", last: {self._last}" if self._last else ""
                    value = values[i] or SeqError("DEADLINE", f"no answer in {time.monotonic() - begun:.1f} s{why}", True)
                elif not isinstance(value, SeqError):
                    value = value if read is None else read(value)
                elif value.retryable:
                    again.append(i)
                values[i] = value
            pause = 0 if attempt == 0 and self._line is None else pause_of(attempt)
            if not again or time.monotonic() + pause >= deadline:
                break
            open_calls, attempt = again, attempt + 1
            self.stats["retries"] += len(again)
            time.sleep(pause)
        return values

    def _exchange(self, texts, deadline):
        """Sends commands and waits for the replies, until the deadline."""
        group = _Group(len(texts))
        calls = [_Call(text, group) for text in texts]
        with self._mutex:
            if self._closed:
                raise closed()
            if len(self._queue) >= self._max_queue:
                raise SeqError("OVERLOADED", f"{len(self._queue)} calls have not been sent yet", True)
            self._queue.extend(calls)
            group.lead = not self._leading
            self._leading = True
        if not group.lead and not group.lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            with self._mutex:
                group.gone = not group.lead  # the lead may have come just now
        if group.lead:
            try:
                self._lead(group, deadline)
            finally:
                self._hand_over(group)
        return calls

    def _hand_over(self, own):
        """Gives the lead to a thread that waits for an answer, or to none."""
        with self._mutex:
            own.gone = True
            for calls in (self._line.calls if self._line else (), self._queue):
                for call in calls:
                    if not call.group.gone:
                        call.group.lead = True
                        call.group.lock.release()
                        return
            self._leading = False

    def _lead(self, own, deadline):
        if self._line:
            self._line.heard = time.monotonic()
        while own.left:
            try:
                if self._line is None:
                    self._connect()
                self._send(self._line)
                self._read(self._line, deadline)
            except (SeqError, OSError) as err:
                self._lose(err if isinstance(err, SeqError) else SeqError("DISCONNECTED", f"{self.address}: {err}", True))
            except BaseException:
                self._lose(SeqError("DISCONNECTED", "the thread that read was interrupted", True))
                raise
            if time.monotonic() >= deadline:
                return

    def _connect(self):
        if self._closed:
            raise closed()
        try:
            self._line = _Line(self, self._at, self._connect_timeout)
        except SeqError as err:
            self._at = (self._at + 1) % len(self._addrs)
            if err.retryable:
                self._failures += 1
                if self._failures >= len(self._addrs):
                    time.sleep(pause_of(self._failures // len(self._addrs)))
            raise
        self._failures = 0

    def _send(self, line):
        with self._mutex:
            calls = [call for call in self._queue if not call.group.gone]
            self._queue.clear()
        if calls:
            line.calls.extend(calls)
            self.stats["commands"] += len(calls)
            self.stats["writes"] += 1
            line.socket.settimeout(self._silence)
            line.socket.sendall(b"".join([call.text for call in calls]))

    def _read(self, line, deadline):
        line.socket.settimeout(max(0.001, min(self._silence, deadline - time.monotonic())))
        try:
            values = line.read()
        except (TimeoutError, socket.timeout):
            silent = time.monotonic() - line.heard
            if silent >= self._silence:
                raise SeqError("DISCONNECTED", f"{line.address} was silent for {silent:.1f} s", True) from None
            return
        for value in values:
            if not line.calls:  # such as that there are too many connections
                raise value if isinstance(value, SeqError) else SeqError("DISCONNECTED", "a reply to nothing", True)
            line.calls.popleft().answer(value)

    def _lose(self, cause):
        """Ends the connection. Calls without a reply fail, and those without a connection if another attempt would."""
        if self._closed:
            cause = closed()
        line, self._line, self._last = self._line, None, cause
        left = []
        if line:
            line.close()
            left = list(line.calls)
            if left and cause.retryable:
                self._at = (self._at + 1) % len(self._addrs)
        if not cause.retryable:
            with self._mutex:
                left += self._queue
                self._queue.clear()
        for call in left:
            if not call.group.gone:
                call.answer(cause)

    def wait(self, key, after, within=25.0):
        name, until, failures = self._name(key), time.monotonic() + within, 0
        whole("after", after, 0, MAX_SEQ)
        while True:
            try:
                text, seconds = self._waiting(name, after, until)
                mark = self._wait(text, seconds)
                over, pause = self._waited(mark, after, until)
                if over:
                    return mark
            except SeqError as err:
                if not err.retryable or time.monotonic() >= until:
                    raise
                pause, failures = pause_of(failures), failures + 1
            time.sleep(pause)

    def _wait(self, text, seconds):
        """One wait, on a connection of its own, since a wait holds its connection."""
        with self._mutex:
            self._enter_wait()
        line, at = None, self._wait_at
        try:
            line = _Line(self, at, self._connect_timeout)
            with self._mutex:
                self._open_waits.add(line)
            line.socket.settimeout(seconds + self._silence)
            line.socket.sendall(text)
            answer = []
            while not answer:
                answer = line.read()
            if isinstance(answer[0], SeqError):
                raise answer[0]
            return mark_of(answer[0])
        except (SeqError, OSError) as err:
            if self._closed:
                raise closed() from None
            if isinstance(err, SeqError) and err.code != "DISCONNECTED":
                raise
            self._wait_at = (at + 1) % len(self._addrs)
            raise err if isinstance(err, SeqError) else SeqError("DISCONNECTED", f"the router is silent: {err}", True) from err
        finally:
            with self._mutex:
                self._waits -= 1
                self._open_waits.discard(line)
            if line:
                line.close()

    def watch(self, key, after=0):
        at = after
        while True:
            try:
                mark = self.wait(key, at, LONGEST_WAIT_MS / 1000)
            except SeqError as err:
                if not err.retryable:
                    raise
                continue
            if mark.known and mark.seq > at:
                before, at = at, mark.seq
                yield replace(mark, after=before)

    def close(self):
        with self._mutex:
            self._closed = True
            for line in [self._line, *self._open_waits]:
                if line:
                    line.end()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
