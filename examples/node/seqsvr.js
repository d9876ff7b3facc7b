// A client of seqsvr for Node: the .proto files as they are, no generated code.
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';

const protos = fileURLToPath(new URL('../../proto', import.meta.url));
const { seqsvr } = grpc.loadPackageDefinition(loader.loadSync(
  ['sequence', 'snowflake', 'segment'].map((name) => path.join('seqsvr/v1', `${name}.proto`)),
  // 64-bit numbers as text: a snowflake ID does not fit a JavaScript number. A sequence does.
  { includeDirs: [protos], keepCase: true, longs: String, enums: String, defaults: true, oneofs: true },
));

// Whatever says "later" or "elsewhere" is worth another try: a number that was lost on the
// way is skipped, never handed out twice.
const retryPolicy = { maxAttempts: 5, initialBackoff: '0.05s', maxBackoff: '1s', backoffMultiplier: 2,
  retryableStatusCodes: ['UNAVAILABLE', 'RESOURCE_EXHAUSTED'] };
const options = { 'grpc.service_config': JSON.stringify({ methodConfig: [{ name: [{}], retryPolicy }] }) };
const again = new Set(['NOT_OWNER', 'NO_LEASE', 'NO_QUORUM', 'OVERLOADED', 'SHUTTING_DOWN', 'NO_ROUTE', 'DEADLINE', 'UID_MEMORY']);

// connect gives clients of a router; method(stub, 'Next') is then a function that promises.
export function connect(addr, credentials = grpc.credentials.createInsecure()) {
  const make = (Service) => new Service(addr, credentials, options);
  return { sequence: make(seqsvr.v1.Sequence), snowflake: make(seqsvr.v1.Snowflake), segment: make(seqsvr.v1.Segment) };
}

// ms that a call may take: longer than the sections of a node that died have no other owner.
const deadline = 1000 * Number(process.env.SEQ_CALL_SECONDS ?? 10);

export const method = (stub, name, timeout = deadline) => (request) => new Promise((resolve, reject) => {
  stub[name](request, { deadline: Date.now() + timeout }, (err, reply) => (err ? reject(err) : resolve(reply)));
});

// Gather sends the calls that begin in one turn of the event loop as one BatchNext.
export class Gather {
  constructor(sequence, space = '') { this.call = method(sequence, 'BatchNext'); this.space = space; this.waiting = []; }

  next(uid, tries = 5) {
    return new Promise((resolve, reject) => {
      if (this.waiting.push({ uid, tries, resolve, reject }) === 1) setImmediate(() => this.send());
    });
  }

  async send() {
    const calls = this.waiting.splice(0, 10_000); // the most that one call takes
    if (this.waiting.length > 0) setImmediate(() => this.send());
    try {
      const { results: [{ first, errors }] } = await this.call({ batches: [{ space: this.space, uids: calls.map((c) => c.uid) }] });
      for (const e of errors) this.failed(calls[e.index], e);
      calls.forEach((c, i) => { if (first[i] !== '0') c.resolve(Number(first[i])); });
    } catch (err) {
      for (const c of calls) c.reject(err);
    }
  }

  failed(call, { code, message }) {
    const name = code.replace('ERROR_CODE_', '');
    if (call.tries <= 1 || !again.has(name)) return call.reject(Object.assign(new Error(message), { code: name }));
    return setTimeout(() => this.next(call.uid, call.tries - 1).then(call.resolve, call.reject), 50);
  }
}
