"""A client of seqsvr for Python, on what protoc makes of the .proto files (make_stubs.sh)."""
import asyncio
import json
import os

import grpc
from seqsvr.v1 import error_pb2 as errors
from seqsvr.v1 import sequence_pb2 as pb
from seqsvr.v1 import sequence_pb2_grpc as stubs
from seqsvr.v1 import snowflake_pb2 as ids
from seqsvr.v1 import snowflake_pb2_grpc as id_stubs

# Whatever says "later" or "elsewhere" is worth another try: a number that was lost on the
# way is skipped, never handed out twice.
RETRY = {"methodConfig": [{"name": [{}], "retryPolicy": {
    "maxAttempts": 5, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
    "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED"]}}]}
AGAIN = {errors.ErrorCode.Value("ERROR_CODE_" + name) for name in (
    "NOT_OWNER", "NO_LEASE", "NO_QUORUM", "OVERLOADED", "SHUTTING_DOWN", "NO_ROUTE", "DEADLINE", "UID_MEMORY")}
# Seconds that a call may take: longer than the sections of a node that died have no other owner.
DEADLINE = float(os.environ.get("SEQ_CALL_SECONDS", 10))


def connect(addr):
    """A channel to a router; grpc.aio.secure_channel for one with TLS."""
    return grpc.aio.insecure_channel(addr, options=[("grpc.service_config", json.dumps(RETRY))])


class KeyFailed(Exception):
    """One key of a batch failed; code is its name in error.proto."""

    def __init__(self, error):
        super().__init__(error.message)
        self.code = errors.ErrorCode.Name(error.code)


class Gather:
    """Sends the calls that begin in one turn of the event loop as one BatchNext."""

    def __init__(self, channel, space=""):
        self.stub, self.space, self.waiting = stubs.SequenceStub(channel), space, []

    async def next(self, uid, tries=5):
        for left in reversed(range(tries)):
            call = asyncio.get_running_loop().create_future()
            self.waiting.append((uid, call))
            if len(self.waiting) == 1:
                asyncio.create_task(self.send())
            number, error = await call
            if error is None:
                return number
            if error.code not in AGAIN or left == 0:
                raise KeyFailed(error)
            await asyncio.sleep(0.05)

    async def send(self):
        calls, self.waiting = self.waiting[:10_000], self.waiting[10_000:]  # the most that one call takes
        if self.waiting:
            asyncio.create_task(self.send())
        try:
            batch = pb.Batch(space=self.space, uids=[uid for uid, _ in calls])
            result = (await self.stub.BatchNext(pb.BatchNextRequest(batches=[batch]), timeout=DEADLINE)).results[0]
            failed = {e.index: e for e in result.errors}
            for i, (_, call) in enumerate(calls):
                if not call.done():  # its caller may have gone
                    call.set_result((result.first[i], failed.get(i)))
        except grpc.RpcError as err:
            for _, call in calls:
                if not call.done():
                    call.set_exception(err)
