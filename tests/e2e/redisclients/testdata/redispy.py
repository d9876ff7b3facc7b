"""redis-py with its defaults: a pipeline is a transaction."""
import sys

import redis

c = redis.Redis(host=sys.argv[1], port=int(sys.argv[2]))
assert c.ping()
assert c.incr("seq:5001") == 1
assert c.incrby("seq:5001", 10) == 11
assert c.get("seq:5001") == b"11"
assert c.mget("seq:5001", "seq:5999") == [b"11", None]
pipe = c.pipeline()
for _ in range(300):
    pipe.incr("seq:5002")
assert pipe.execute() == list(range(1, 301))
ids = {int(c.execute_command("INCR", "snowflake:default")) for _ in range(500)}
assert len(ids) == 500, len(ids)
pipe = c.pipeline()
pipe.incr("seq:5003")
pipe.incr("nothing")
try:
    pipe.execute()
    raise SystemExit("a transaction with a wrong command was carried out")
except redis.ResponseError as err:
    assert "unknown key" in str(err), err
assert c.get("seq:5003") is None
assert c.info()["cluster_enabled"] == 0
assert c.config_get("save") == {"save": ""}
print("done")
