"""python3 test.py PHASE ADDR...: asserts what a cluster answers, in asyncio and in threads. tests/languages runs it."""
import asyncio
import concurrent.futures
import json
import os
import ssl
import sys
import threading
import time

from seqsvr import Ask, AsyncClient, Client, Range, SeqError

PHASE, ADDRS = sys.argv[1], sys.argv[2:]
TIMEOUT = 120.0  # seconds, on a busy machine
THREADS = concurrent.futures.ThreadPoolExecutor(400)


def in_thread(call, *args, **options):
    return asyncio.get_running_loop().run_in_executor(THREADS, lambda: call(*args, **options))


class InThreads:
    """A Client whose methods run in threads, so that both clients have one test."""

    def __init__(self, addrs, **options):
        self.of = Client(addrs, **options)

    def __getattr__(self, name):
        value = getattr(self.of, name)
        return (lambda *a, **o: in_thread(value, *a, **o)) if callable(value) else value

    async def watch(self, key, after=0):
        marks = self.of.watch(key, after)
        while True:
            yield await in_thread(next, marks)


def options(**more):
    return {"timeout": TIMEOUT, "connect_timeout": 60.0, "silence_timeout": 60.0, **more}


async def fails(code, retryable, call):
    try:
        got = await (call() if callable(call) else call)
    except SeqError as err:
        assert (err.code, err.retryable) == (code, retryable), err
        return err
    raise AssertionError(f"{got!r}, want {code}")


async def calls(kind, base):
    c = kind(ADDRS, **options())
    orders, inbox = kind(ADDRS, **options(space="orders")), kind(ADDRS, **options(space="inbox"))
    same(await c.next(base + 42), 1)
    same(await c.take(base + 42, 100), Range(2, 101))
    same(await c.current(base + 42), 101)
    same(await c.current(base + 43), 0)
    same(await c.raise_to(base + 42, 500), 500)
    same(await c.raise_to(base + 42, 5), 500)
    same(await c.next(("", base + 42)), 501)
    same(await c.next(2**64 - 1 - base), 1)
    for name in f"{base}", f"room:{base}", f"a/{base}", f'Zürich "{base}"', f"-{base}":
        same(await c.next(name), 1)
        same(await c.next(("", name)), 2)
        same(await c.next(("orders", name)), 1)
    got = await c.next_batch([base + 1, base + 2, Ask(f"x:{base}", 5), ("nosuch", 1), base + 1])
    same([(r.first, r.last, r.error and r.error.code) for r in got], [(1, 1, None), (1, 1, None), (1, 5, None), (0, 0, "UNKNOWN_SPACE"), (2, 2, None)])

    ids = await c.generate("default", 300)
    assert len(set(ids)) == 300 and min(ids) > 2**53, ids[:3]
    await fails("UNKNOWN_TAG", False, c.segment("nosuch", 3))

    same(await orders.take(base + 7, 3, request_id="msg-1"), Range(1, 3))
    same(await orders.take(base + 7, 3, request_id="msg-1"), Range(1, 3, True))
    same(await orders.lookup(base + 7, "msg-1"), Range(1, 3, True))
    same(await orders.lookup(base + 7, "msg-2"), None)
    same(await orders.next(base + 7), 4)
    err = await fails("ID_CONFLICT", False, orders.take(base + 7, request_id="msg-1"))
    same((err.first, err.count), (1, 3))
    await fails("ID_EXPIRED", False, orders.take(base + 7, request_id="old", first_sent_ms=1))
    await fails("ID_NOT_KEPT", False, c.next(1, request_id="a"))
    await fails("UNKNOWN_SPACE", False, c.next(("nosuch", 1)))
    await fails("RAISE_TOO_FAR", False, c.raise_to(base + 42, 2**53 - 1))
    await fails("NO_TICKETS", False, c.open(1))
    for key in -1, 1.5, 2**64, "", None, True, ("a", "b", "c"):
        await fails("BAD_ARGUMENT", False, lambda: c.next(key))
    await fails("BAD_ARGUMENT", False, lambda: c.take(1, 0))
    await fails("BAD_ARGUMENT", False, lambda: kind(["localhost"]))

    u = f"u:{base}"
    await inbox.cancel(await inbox.open(u))
    same((await inbox.wait(u, 0, TIMEOUT)).seq, 1)  # a new owner knows marks after a ticket's life
    a, b = await inbox.open(u), await inbox.open(u, 2, life_ms=9000)
    same((a.first, b.first, b.last, a.life_ms, b.life_ms), (2, 3, 4, 10_000, 9000))
    assert b.deadline_ms > (time.time() - TIMEOUT) * 1000
    await inbox.done(b)
    mark = await inbox.mark(u)
    same((mark.known, mark.seq, mark.last), (True, 1, 4))
    watched = inbox.watch(u, 1)
    waited, first = asyncio.ensure_future(inbox.wait(u, 1, TIMEOUT)), asyncio.ensure_future(watched.__anext__())
    await inbox.done(a)
    same((await waited).seq, 4)
    mark = await first
    same((mark.after, mark.seq), (1, 4))
    await inbox.cancel(await inbox.open(u))
    mark = await watched.__anext__()
    same((mark.after, mark.seq), (4, 5))
    await watched.aclose()
    same((await inbox.wait(u, 5, 0.001)).seq, 5)
    await fails("TICKET_ENDED", False, inbox.done(a))

    before = dict(c.stats)
    many = await asyncio.gather(*(c.next(base + 300) for _ in range(300)))
    same(c.stats["commands"] - before["commands"], 300)
    assert c.stats["writes"] - before["writes"] < 300, c.stats  # of threads, those that come while another one reads
    same(sorted(many), list(range(1, 301)))
    left = asyncio.ensure_future(inbox.wait(u, 5, TIMEOUT))
    while inbox._waits == 0 or not inbox._open_waits:
        await asyncio.sleep(0.01)
    for one in c, orders, inbox:
        await one.close()
    await fails("CLOSED", False, left)
    await fails("CLOSED", False, lambda: c.next(base + 1))


def same(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


async def coalesce(kind, base):
    """The cluster counts how many pipelines 1,000 calls at a time were."""
    c = kind(ADDRS, **options())
    await c.next(base + 1)
    if kind is AsyncClient:
        await asyncio.gather(*(c.next(base + 1000 + i) for i in range(1000)))
    else:
        await c.next_batch(range(base + 1000, base + 2000))
    same((c.stats["commands"], c.stats["writes"]), (1001, 2))
    await c.close()


async def failover(kind, base):
    """Callers take without a pause while the router that serves them is killed, and go on at the other one."""
    c = kind(ADDRS, **options())
    while c.address != ADDRS[0]:
        c = kind(ADDRS, **options())
    over = threading.Event()

    async def taker(key):
        last, more = 0, 50
        while more:
            more -= over.is_set()
            n = await c.next(key)
            assert n > last, (n, last)
            last = n

    takers = [asyncio.ensure_future(taker(base + 5000 + i)) for i in range(16)]
    await c.next(base + 1)
    print("kill", flush=True)
    await in_thread(sys.stdin.readline)
    orders = kind(ADDRS, **options(space="orders"))
    ordered = await orders.take(base + 9, 2, request_id="over")
    over.set()
    await asyncio.gather(*takers)
    same((c.address, c.stats["connections"] > 1), (ADDRS[1], True))
    same(await orders.take(base + 9, 2, request_id="over"), Range(ordered.first, ordered.last, True))
    nowhere = kind(ADDRS[:1], timeout=0.2)
    await fails("DEADLINE", True, nowhere.next(1))
    for one in c, orders, nowhere:
        await one.close()


async def secure(kind, base):
    tls = ssl.create_default_context(cafile=os.environ["SEQ_CA"])
    c, wrong = (kind(ADDRS, **options(ssl=tls, token=token)) for token in (os.environ["SEQ_TOKEN"], "swordfish"))
    same(await c.next(base + 42), 1)
    await fails("UNAUTHENTICATED", False, wrong.next(base + 42))
    plain = kind(ADDRS, **options(timeout=1.0))
    try:
        await plain.next(base + 42)
        raise AssertionError("a port of TLS answered without")
    except SeqError as err:
        assert err.retryable, err
    for one in c, wrong, plain:
        await one.close()


def bench():
    """How many numbers a second SEQ_CALLERS callers get in SEQ_SECONDS, as JSON; SEQ_THREADS=1 for threads."""
    callers, seconds = int(os.environ.get("SEQ_CALLERS", 64)), float(os.environ.get("SEQ_SECONDS", 3))
    warm = time.perf_counter() + 1
    end, taken = warm + seconds, [0] * callers

    async def in_loop():
        async with AsyncClient(ADDRS) as c:
            async def caller(i):
                last, clock = 0, time.perf_counter
                while (begun := clock()) < end:
                    n = await c.next(10_000 + i)
                    if n <= last:
                        raise AssertionError(f"{n} after {last}")
                    last = n
                    taken[i] += begun >= warm
            await asyncio.gather(*map(caller, range(callers)))

    def in_threads():
        with Client(ADDRS) as c:
            def caller(i):
                last, clock = 0, time.perf_counter
                while (begun := clock()) < end:
                    n = c.next(10_000 + i)
                    if n <= last:
                        raise AssertionError(f"{n} after {last}")
                    last = n
                    taken[i] += begun >= warm
            list(THREADS.map(caller, range(callers)))

    if os.environ.get("SEQ_THREADS"):
        in_threads()
    else:
        asyncio.run(in_loop())
    print(json.dumps({"rate": round(sum(taken) / seconds)}))


async def main():
    kind = {"asyncio": AsyncClient, "threads": InThreads}[os.environ.get("SEQ_KIND", "asyncio")]
    await globals()[PHASE](kind, int(os.environ.get("SEQ_BASE", 0)))
    print("done")


if PHASE == "bench":
    bench()
else:
    asyncio.run(main())
THREADS.shutdown()
