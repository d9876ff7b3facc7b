"""The client for asyncio."""
import asyncio
import time
from collections import deque

from ._protocol import LONGEST_WAIT_MS, MAX_SEQ, Calls, Replies, SeqError, closed, command, mark_of, pause_of, whole
from dataclasses import replace

SWEEP = 0.05  # seconds between two looks at deadlines


class _Call:
    __slots__ = ("text", "read", "future", "begun", "deadline", "attempts", "fault")

    def __init__(self, text, read, future, begun, deadline):
        self.text, self.read, self.future, self.begun, self.deadline = text, read, future, begun, deadline
        self.attempts, self.fault = 0, None


class _Connection(asyncio.Protocol):
    """Sends the calls of one turn of the event loop in one write."""

    def __init__(self, client, address, token, on_reply, on_end):
        self.client, self.address, self.on_reply, self.on_end = client, address, on_reply, on_end
        self.loop, self.token = client._loop, token
        self.transport, self.calls, self.out, self.replies = None, deque(), [], Replies()
        self.ended, self.heard, self.ready = False, 0.0, client._loop.create_future()

    def connection_made(self, transport):
        self.transport = transport
        if self.token:
            transport.write(command(b"AUTH", self.token))
        else:
            self.ready.set_result(None)

    def send(self, call):
        if not self.calls:
            self.heard = self.loop.time()
        self.calls.append(call)
        if not self.out:
            self.loop.call_soon(self._flush)
        self.out.append(call.text)

    def _flush(self):
        if self.ended or not self.out:
            return
        self.client.stats["commands"] += len(self.out)
        self.client.stats["writes"] += 1
        self.transport.write(b"".join(self.out))
        self.out.clear()

    def data_received(self, data):
        self.heard = self.loop.time()
        try:
            values = self.replies.read(data)
        except SeqError as err:
            return self.end(err)
        calls, on_reply = self.calls, self.on_reply
        for value in values:
            if not self.ready.done():  # the reply to AUTH
                if isinstance(value, SeqError):
                    return self.end(value)
                self.ready.set_result(None)
            elif not calls:  # such as that there are too many connections
                return self.end(value if isinstance(value, SeqError) else SeqError("DISCONNECTED", "a reply to nothing", True))
            else:
                on_reply(calls.popleft(), value)

    def connection_lost(self, exc):
        self.end(SeqError("DISCONNECTED", f"{self.address} closed the connection{f': {exc}' if exc else ''}", True))

    def end(self, cause):
        if self.ended:
            return
        self.ended = True
        if self.transport:
            self.transport.abort()
        if not self.ready.done():
            self.ready.set_exception(cause)
            self.ready.exception()  # seen
        calls, self.calls = self.calls, deque()
        self.on_end(self, cause, calls)


class AsyncClient(Calls):
    """A client for one event loop. Calls of one turn of the loop travel together."""

    def __init__(self, addrs=("127.0.0.1:6379",), *, token=None, ssl=None, space="", timeout=10.0, connect_timeout=3.0, silence_timeout=5.0,
                 max_queue=100_000, max_waits=100):
        super().__init__(addrs, space, timeout, connect_timeout, silence_timeout, max_queue, max_waits, token, ssl)
        self._loop = self._connection = self._connecting = self._sweeper = self._last = None
        self._waiting_calls, self._retrying, self._open_waits = deque(), set(), set()

    def _call(self, text, read, timeout):
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        future = loop.create_future()
        if self._closed:
            future.set_exception(closed())
            return future
        now = loop.time()
        call = _Call(text, read, future, now, now + (self._timeout if timeout is None else timeout))
        connection = self._connection
        unanswered = len(self._waiting_calls) + (len(connection.calls) if connection else 0)
        if unanswered >= self._max_queue:
            future.set_exception(SeqError("OVERLOADED", f"{unanswered} calls have no answer yet", True))
            return future
        if self._sweeper is None:
            self._sweeper = loop.call_later(SWEEP, self._sweep)
        self._send(call)
        return future

    async def _all(self, calls, timeout, failed):
        futures = [self._call(text, read, timeout) for text, read in calls]
        got = await asyncio.gather(*futures, return_exceptions=True)
        for i, value in enumerate(got):
            if isinstance(value, SeqError):
                if failed is None:
                    raise value
                got[i] = failed(value)
        return got

    def _send(self, call):
        call.attempts += 1
        connection = self._connection
        if connection is not None and not connection.ended:
            connection.send(call)
            return
        self._waiting_calls.append(call)
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._connect())

    async def _dial(self, at, on_reply, on_end):
        host, port = self._addrs[at]
        self.stats["connections"] += 1
        connection = _Connection(self, f"{host}:{port}", self._token, on_reply, on_end)

        async def dial():
            await self._loop.create_connection(lambda: connection, host, port, ssl=self._ssl)
            await connection.ready

        try:
            await asyncio.wait_for(dial(), self._connect_timeout)
        except (OSError, asyncio.TimeoutError) as err:
            cause = SeqError("DISCONNECTED", f"{host}:{port}: {err or 'no connection in time'}", True)
            connection.end(cause)
            raise cause from err
        return connection

    async def _connect(self):
        """Makes a connection, at the next address after each failure, for as long as calls wait for one."""
        failures = 0
        try:
            while self._waiting_calls and not self._closed:
                try:
                    connection = await self._dial(self._at, self._reply, self._lost)
                except SeqError as err:
                    self._last = err
                    if not err.retryable:  # a token that does not hold
                        while self._waiting_calls:
                            self._fail(self._waiting_calls.popleft(), err)
                        return
                    self._at = (self._at + 1) % len(self._addrs)
                    failures += 1
                    if failures >= len(self._addrs):
                        await asyncio.sleep(pause_of(failures // len(self._addrs)))
                    continue
                self._connection = connection
                calls, self._waiting_calls = self._waiting_calls, deque()
                for call in calls:
                    if not call.future.done():
                        connection.send(call)
                return
        finally:
            self._connecting = None

    def _reply(self, call, value):
        future = call.future
        if future.done():  # its caller gave up
            return
        if not isinstance(value, SeqError):
            future.set_result(value if call.read is None else call.read(value))
        elif value.retryable:
            self._again(call, value, pause_of(call.attempts - 1))
        else:
            future.set_exception(value)

    def _again(self, call, fault, pause):
        call.fault = fault
        if self._loop.time() + pause >= call.deadline or self._closed:
            return self._fail(call, fault)
        self.stats["retries"] += 1
        self._retrying.add(call)
        self._loop.call_later(pause, self._resend, call)

    def _resend(self, call):
        self._retrying.discard(call)
        if not call.future.done():
            self._send(call)

    @staticmethod
    def _fail(call, err):
        if not call.future.done():
            call.future.set_exception(err)

    def _lost(self, connection, cause, calls):
        if self._connection is not connection:
            return
        self._connection, self._last = None, cause
        if calls:
            self._at = (self._at + 1) % len(self._addrs)
        for call in calls:
            if not call.future.done():
                self._again(call, cause, 0)

    def _sweep(self):
        now = self._loop.time()
        connection = self._connection
        unanswered = connection.calls if connection else ()
        for calls in (unanswered, self._waiting_calls):
            for call in calls:
                if now >= call.deadline and not call.future.done():
                    why = f", last: {self._last}" if self._last else ""
                    self._fail(call, call.fault or SeqError("DEADLINE", f"no answer in {now - call.begun:.1f} s{why}", True))
        self._waiting_calls = deque(call for call in self._waiting_calls if not call.future.done())
        if unanswered and now - connection.heard > self._silence:
            connection.end(SeqError("DISCONNECTED", f"{connection.address} was silent for {now - connection.heard:.1f} s", True))
        self._sweeper = None
        if self._connection and self._connection.calls or self._waiting_calls or self._retrying:
            self._sweeper = self._loop.call_later(SWEEP, self._sweep)

    async def wait(self, key, after, within=25.0):
        name, until, failures = self._name(key), time.monotonic() + within, 0
        whole("after", after, 0, MAX_SEQ)
        while True:
            try:
                text, seconds = self._waiting(name, after, until)
                mark = await self._wait(text, seconds)
                over, pause = self._waited(mark, after, until)
                if over:
                    return mark
            except SeqError as err:
                if not err.retryable or time.monotonic() >= until:
                    raise
                pause, failures = pause_of(failures), failures + 1
            await asyncio.sleep(pause)

    async def _wait(self, text, seconds):
        """One wait, on a connection of its own, since a wait holds its connection."""
        self._loop = asyncio.get_running_loop()
        self._enter_wait()
        answer, connection = self._loop.create_future(), None

        def on_reply(_, value):
            if not answer.done():
                answer.set_exception(value) if isinstance(value, SeqError) else answer.set_result(mark_of(value))

        def on_end(_, cause, calls):
            if not answer.done():
                answer.set_exception(cause)
                answer.exception()  # seen
        try:
            try:
                connection = await self._dial(self._wait_at, on_reply, on_end)
                self._open_waits.add(connection)
                connection.send(_Call(text, None, answer, 0, 0))
                return await asyncio.wait_for(answer, seconds + self._silence)
            except asyncio.TimeoutError as err:
                raise SeqError("DISCONNECTED", "the router is silent", True) from err
        except SeqError as err:
            if err.code == "DISCONNECTED":
                self._wait_at = (self._wait_at + 1) % len(self._addrs)
            raise
        finally:
            self._waits -= 1
            if connection:
                self._open_waits.discard(connection)
                connection.end(closed())

    async def watch(self, key, after=0):
        at = after
        while True:
            try:
                mark = await self.wait(key, at, LONGEST_WAIT_MS / 1000)
            except SeqError as err:
                if not err.retryable:
                    raise
                continue
            if mark.known and mark.seq > at:
                before, at = at, mark.seq
                yield replace(mark, after=before)

    async def close(self):
        self._closed = True
        if self._connecting:
            self._connecting.cancel()
        if self._sweeper:
            self._sweeper.cancel()
        connections = [c for c in (self._connection, *self._open_waits) if c]
        left = [*self._waiting_calls, *self._retrying, *(call for c in connections for call in c.calls)]
        self._waiting_calls.clear()
        for call in left:
            self._fail(call, closed())
        for connection in connections:
            connection.end(closed())
        await asyncio.sleep(0)

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.close()
