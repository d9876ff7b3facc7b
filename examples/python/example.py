"""python3 example.py [ROUTER]: takes numbers and IDs, and compares single with gathered calls.
Its last line is what it measured, as JSON."""
import asyncio
import json
import os
import sys
import time

from seqsvr_client import DEADLINE, Gather, KeyFailed, connect, id_stubs, ids, pb, stubs


async def rate(rounds, call):
    """How many calls a second 512 callers get, each calling again at once."""

    async def caller(uid):
        last = 0
        for _ in range(rounds):
            number = await call(uid)
            if number <= last:
                raise AssertionError(f"{uid} got {number} after {last}")
            last = number

    began = time.perf_counter()
    await asyncio.gather(*(caller(2000 + i) for i in range(512)))
    return round(512 * rounds / (time.perf_counter() - began))


async def main():
    addr = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SEQ_ADDR", "127.0.0.1:7400")
    async with connect(addr) as channel:
        sequence, gather = stubs.SequenceStub(channel), Gather(channel)

        async def single(uid):
            return (await sequence.Next(pb.NextRequest(uid=uid), timeout=DEADLINE)).first

        print("next of 42:", await single(42))
        many = await sequence.Next(pb.NextRequest(uid=42, count=100), timeout=DEADLINE)
        print("a range:", many.first, "to", many.last)
        print("of a string key:", (await sequence.Next(pb.NextRequest(key="room:7"), timeout=DEADLINE)).first)
        snowflake = id_stubs.SnowflakeStub(channel)
        print("snowflake ID:", (await snowflake.Generate(ids.SnowflakeGenerateRequest(), timeout=DEADLINE)).ids[0])
        try:
            await Gather(channel, "nosuch").next(1)
            refused = ""
        except KeyFailed as err:
            refused = str(err)
        await rate(2, gather.next)  # the connection is there
        alone, together = await rate(5, single), await rate(50, gather.next)
        print(json.dumps({"single": alone, "gathered": together, "times": together / alone, "refused": refused}))


asyncio.run(main())
