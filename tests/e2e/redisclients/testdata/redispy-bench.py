"""python3 redispy-bench.py bench HOST:PORT: how many numbers a second SEQ_CALLERS callers of redis-py get in SEQ_SECONDS, as JSON."""
import asyncio
import json
import os
import sys
import time

import redis.asyncio as redis


async def main():
    host, port = sys.argv[2].rsplit(":", 1)
    c = redis.Redis(host=host, port=int(port))
    seconds, taken = float(os.environ.get("SEQ_SECONDS", 3)), 0
    warm = time.perf_counter() + 1
    end = warm + seconds

    async def caller(i):
        nonlocal taken
        last = 0
        while (begun := time.perf_counter()) < end:
            n = await c.incr(f"seq:{30_000 + i}")
            if n <= last:
                raise AssertionError(f"{n} after {last}")
            last = n
            taken += begun >= warm

    await asyncio.gather(*map(caller, range(int(os.environ.get("SEQ_CALLERS", 64)))))
    print(json.dumps({"rate": round(taken / seconds)}))


asyncio.run(main())
