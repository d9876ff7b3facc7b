// A client of seqsvr over the RESP port of its routers.
import { Connection, SeqError, command } from './connection.js';

export { SeqError };

const firstPause = 10; // ms before the second attempt of a call
const longestPause = 1000;
const sweepEvery = 50; // ms between two looks at deadlines
const longestWait = 50_000; // ms of one wait at a router, which allows 55 s

const isKey = (key) => typeof key !== 'object' || key === null || 'uid' in key || 'name' in key;
const bad = (message) => new SeqError('BAD_ARGUMENT', message, false);

function whole(what, n, least, most) {
  if (!Number.isSafeInteger(n) || n < least || n > most) throw bad(`${what} is ${n}, expected ${least} to ${most}`);
  return n;
}

export class Client {
  #options;
  #at; // index of the address in use
  #connection = null; // if null, there is none, nor one on its way
  #failures = 0; // addresses in a row that did not answer
  #pause = null; // the timer before the next connection
  #lastFault = null;
  #waiting = []; // calls without a connection
  #open = new Set(); // calls that may meet their deadlines
  #waits = new Set(); // connections of waits
  #waitAt; // index of their address
  #sweeper = null;
  #closed = false;
  #prefix;

  /** What the client did so far. */
  stats = { commands: 0, writes: 0, retries: 0, connections: 0 };

  constructor({ addrs = ['127.0.0.1:6379'], token, tls, space = '', timeoutMs = 10_000, connectMs = 3000, silenceMs = 5000, maxQueue = 100_000, maxWaits = 100 } = {}) {
    if (!Array.isArray(addrs) || addrs.length === 0 || addrs.some((a) => !(Number(/:(\d+)$/.exec(a)?.[1]) < 65536))) {
      throw bad(`addrs is ${JSON.stringify(addrs)}, expected a list of host:port`);
    }
    whole('timeoutMs', timeoutMs, 1, 2 ** 31 - 1);
    this.#options = { addrs, token, tls, space, timeoutMs, connectMs, silenceMs, maxQueue, maxWaits };
    this.#at = this.#waitAt = Math.floor(Math.random() * addrs.length); // so that clients divide among routers
    this.#prefix = space === '' ? 'seq:' : `seq:${space}/`;
  }

  /** The address in use. */
  get address() { return this.#options.addrs[this.#at]; }

  /** Takes the next number of a key. */
  next(key, options) {
    if (options === undefined && typeof key === 'number' && key >= 0 && Number.isSafeInteger(key)) {
      const text = this.#prefix + key; // as #name has it, without its checks
      return this.#call(`*2\r\n$4\r\nINCR\r\n$${text.length}\r\n${text}\r\n`, undefined, undefined);
    }
    return this.take(key, options).then((range) => range.first);
  }

  /** Takes count numbers of a key in a row. */
  async take(key, options = {}) {
    const { count = 1, requestId, firstSentMs } = options;
    whole('count', count, 1, 1_048_576);
    const name = this.#name(key);
    if (requestId === undefined) {
      const read = (last) => ({ first: last - count + 1, last, replayed: false });
      return this.#call(count === 1 ? command('INCR', name) : command('INCRBY', name, count), read, options);
    }
    const read = ([first, last, replayed]) => ({ first, last, replayed: replayed === 1 });
    return this.#call(command('SEQ.NEXT', name, 'COUNT', count, ...this.#request(requestId, firstSentMs)), read, options);
  }

  /** Takes numbers of many keys. An entry that failed has an error. */
  nextBatch(asks, options) {
    return Promise.all(asks.map((ask) => {
      const { key, ...own } = isKey(ask) ? { key: ask } : ask;
      return this.take(key, { ...options, ...own })
        .catch((error) => ({ first: 0, last: 0, replayed: false, error }));
    }));
  }

  /** Returns the numbers that a request id has got, or null. */
  async lookup(key, requestId, options) {
    const read = (got) => got && { first: got[0], last: got[1], replayed: true };
    return this.#call(command('SEQ.LOOKUP', this.#name(key), 'ID', requestId), read, options);
  }

  /** Returns the last number that was taken, or a bound above it after a crash; 0 if there is none. */
  async current(key, options) {
    return this.#call(command('GET', this.#name(key)), Number, options);
  }

  /** Lifts a key to atLeast, and returns the number that it has reached. */
  async raise(key, atLeast, options) {
    return this.#call(command('SEQ.RAISE', this.#name(key), whole('atLeast', atLeast, 0, Number.MAX_SAFE_INTEGER)), undefined, options);
  }

  /** Takes snowflake IDs, as text. */
  async generate(namespace = 'default', count = 1, options = undefined) {
    whole('count', count, 1, 10_000);
    const one = command('INCR', `snowflake:${namespace}`);
    return Promise.all(Array.from({ length: count }, () => this.#call(one, undefined, options)));
  }

  /** Takes count numbers of a segment tag in a row. */
  async segment(tag, count = 1, options = undefined) {
    whole('count', count, 1, 1_048_576);
    return this.#call(command('INCRBY', `tag:${tag}`, count), (last) => ({ first: last - count + 1, last, replayed: false }), options);
  }

  /** Takes numbers with a ticket. */
  async open(key, options = {}) {
    const { count = 1, lifeMs, requestId, firstSentMs } = options;
    const words = ['SEQ.OPEN', this.#name(key), 'COUNT', whole('count', count, 1, 1_048_576)];
    if (lifeMs !== undefined) words.push('LIFE', whole('lifeMs', lifeMs, 1, 300_000));
    if (requestId !== undefined) words.push(...this.#request(requestId, firstSentMs));
    const begun = Date.now();
    const read = ([first, last, id, life, replayed]) => ({ key, first, last, id, lifeMs: life, deadlineMs: begun + life, replayed: replayed === 1 });
    return this.#call(command(...words), read, options);
  }

  /** Ends a ticket, since its numbers were committed. */
  async done(ticket, options) { await this.#end('SEQ.DONE', ticket, options); }

  /** Ends a ticket whose numbers will not be committed. */
  async cancel(ticket, options) { await this.#end('SEQ.CANCEL', ticket, options); }

  #end(verb, { key, first, id }, options) {
    return this.#call(command(verb, this.#name(key), first, id), undefined, options);
  }

  /** Returns the mark of a key. */
  async mark(key, options) {
    return this.#call(command('SEQ.MARK', this.#name(key)), ([mark]) => markOf(mark), options);
  }

  /** Resolves when the mark of a key is above after, and after withinMs at the latest, to the mark. */
  async wait(key, after, options = {}) {
    const until = Date.now() + whole('withinMs', options.withinMs ?? 25_000, 0, 2 ** 31 - 1);
    const name = this.#name(key);
    whole('after', after, 0, Number.MAX_SAFE_INTEGER);
    for (let failures = 0; ;) {
      const left = Math.max(0, until - Date.now());
      try {
        const mark = await this.#wait(command('SEQ.WAIT', name, after, Math.min(left, longestWait)), left, options.signal);
        if (mark.known ? mark.seq > after || left <= longestWait : left === 0) return mark;
        if (!mark.known) await sleep(Math.min(left, mark.knownInMs), options.signal);
      } catch (err) {
        if (!err.retryable || Date.now() >= until) throw err;
        await sleep(pauseOf(failures++), options.signal);
      }
    }
  }

  /** Yields the mark of a key each time that it rises above after. */
  async* watch(key, after = 0, options = {}) {
    for (let at = after; ;) {
      const mark = await this.wait(key, at, { withinMs: longestWait, signal: options.signal }).catch((err) => {
        if (err.retryable) return null;
        throw err;
      });
      if (mark?.known && mark.seq > at) yield { ...mark, after: at };
      at = Math.max(at, mark?.known ? mark.seq : 0);
    }
  }

  /** Ends all connections. Calls without an answer fail with CLOSED. */
  close() {
    this.#closed = true;
    clearTimeout(this.#pause);
    const closed = new SeqError('CLOSED', 'the client is closed', false);
    for (const call of this.#open) this.#settle(call, closed);
    for (const c of [this.#connection, ...this.#waits]) c?.end(closed);
    this.#waiting = [];
  }

  // #name is the key as RESP has it. A string stands in quotes, so that it is never taken for a UID.
  #name(key) {
    let prefix = this.#prefix;
    if (typeof key === 'object' && key !== null) {
      if (key.space !== undefined) prefix = key.space === '' ? 'seq:' : `seq:${key.space}/`;
      key = key.uid ?? key.name;
    }
    switch (typeof key) {
      case 'string':
        return `${prefix}"${key}"`;
      case 'number':
        return prefix + whole('uid', key, 0, Number.MAX_SAFE_INTEGER);
      case 'bigint':
        if (key >= 0n && key < 1n << 64n) return prefix + key;
    }
    throw bad(`key is ${String(key)}, expected a uid of 0 to 2^64-1, a string, or { space, uid } or { space, name }`);
  }

  // #request is the words of a request id, which all attempts repeat.
  #request(id, firstSentMs = Date.now()) {
    if (typeof id !== 'string') throw bad(`requestId is ${String(id)}, expected a string of 1 to 64 bytes`);
    return ['ID', id, 'SENT', firstSentMs];
  }

  // #call sends a command until it has an answer that is worth no other attempt, or until its deadline.
  #call(text, read, options) {
    return new Promise((resolve, reject) => {
      const { signal, timeoutMs = this.#options.timeoutMs } = options ?? {};
      const call = { command: text, read, resolve, reject, begun: Date.now(), deadline: 0, attempts: 0, fault: null, settled: false, stop: null, signal };
      call.deadline = call.begun + timeoutMs;
      if (this.#closed) return reject(new SeqError('CLOSED', 'the client is closed', false));
      if (this.#open.size >= this.#options.maxQueue) {
        return reject(new SeqError('OVERLOADED', `${this.#open.size} calls have no answer yet`, true));
      }
      if (signal) {
        if (signal.aborted) return reject(aborted());
        call.stop = () => this.#settle(call, aborted());
        signal.addEventListener('abort', call.stop, { once: true });
      }
      this.#open.add(call);
      this.#sweeper ??= setInterval(() => this.#sweep(), sweepEvery);
      this.#send(call);
    });
  }

  #send(call) {
    call.attempts++;
    if (this.#connection?.ready) return this.#connection.send(call);
    this.#waiting.push(call);
    return this.#connect();
  }

  #connect() {
    if (this.#connection || this.#pause || this.#closed) return;
    this.stats.connections++;
    this.#connection = new Connection(this.address, this.#options, {
      stats: this.stats,
      onReady: (c) => {
        this.#failures = 0;
        for (const call of this.#waiting.splice(0)) if (!call.settled) c.send(call);
      },
      onReply: (call, value) => this.#reply(call, value),
      onEnd: (c, cause, left) => this.#lost(c, cause, left),
    });
  }

  #reply(call, value) {
    if (call.settled) return;
    if (!(value instanceof SeqError)) {
      this.#settle(call, null, call.read ? call.read(value) : value);
    } else if (value.retryable) {
      this.#again(call, value, pauseOf(call.attempts - 1));
    } else {
      this.#settle(call, value);
    }
  }

  // #again repeats a call after a pause. Its deadline ends it, here or in #sweep.
  #again(call, fault, pause) {
    call.fault = fault;
    if (Date.now() + pause >= call.deadline) return this.#settle(call, fault);
    this.stats.retries++;
    setTimeout(() => { if (!call.settled) this.#send(call); }, pause);
  }

  // #lost goes on at the next address.
  #lost(connection, cause, left) {
    if (this.#connection !== connection) return;
    this.#connection = null;
    this.#lastFault = cause;
    if (!connection.ready || left.length > 0) this.#at = (this.#at + 1) % this.#options.addrs.length;
    if (!cause.retryable) { // a token that does not hold
      for (const call of [...this.#waiting.splice(0), ...left]) this.#settle(call, cause);
      return;
    }
    for (const call of left) if (!call.settled) this.#again(call, cause, 0);
    const round = Math.floor(this.#failures++ / this.#options.addrs.length);
    if (this.#waiting.every((call) => call.settled)) return;
    this.#pause = setTimeout(() => {
      this.#pause = null;
      if (this.#waiting.length > 0) this.#connect();
    }, round === 0 ? 0 : pauseOf(round));
  }

  #sweep() {
    const now = Date.now();
    for (const call of this.#open) {
      if (now < call.deadline) continue;
      const why = call.fault ?? this.#lastFault;
      this.#settle(call, call.fault ?? new SeqError('DEADLINE', `no answer in ${now - call.begun} ms${why ? `, last: ${why.message}` : ''}`, true));
    }
    this.#waiting = this.#waiting.filter((call) => !call.settled);
    const c = this.#connection;
    if (c?.ready && c.unanswered > 0 && now - c.heard > this.#options.silenceMs) {
      c.end(new SeqError('DISCONNECTED', `${c.address} was silent for ${now - c.heard} ms`, true));
    }
    if (this.#open.size === 0) {
      clearInterval(this.#sweeper);
      this.#sweeper = null;
    }
  }

  #settle(call, err, value) {
    if (call.settled) return;
    call.settled = true;
    this.#open.delete(call);
    if (call.stop) call.signal.removeEventListener('abort', call.stop);
    if (err) call.reject(err);
    else call.resolve(value);
  }

  // #wait makes one wait on a connection of its own, since a wait holds its connection.
  #wait(text, ms, signal) {
    return new Promise((resolve, reject) => {
      if (this.#closed) return reject(new SeqError('CLOSED', 'the client is closed', false));
      if (signal?.aborted) return reject(aborted());
      if (this.#waits.size >= this.#options.maxWaits) return reject(new SeqError('OVERLOADED', `${this.#waits.size} waits have a connection each`, true));
      const stop = () => over(aborted());
      const connection = new Connection(this.#options.addrs[this.#waitAt], this.#options, {
        stats: this.stats,
        onReady: (c) => c.send({ command: text }),
        onReply: (_, value) => over(value instanceof SeqError ? value : null, value),
        onEnd: (c, cause, left) => {
          if (!c.ready || left.length > 0) this.#waitAt = (this.#waitAt + 1) % this.#options.addrs.length;
          over(cause);
        },
      });
      const timer = setTimeout(() => over(new SeqError('DISCONNECTED', `${connection.address} was silent`, true)),
        Math.min(ms, longestWait) + this.#options.connectMs + this.#options.silenceMs);
      const over = (err, value) => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', stop);
        this.#waits.delete(connection);
        if (err) reject(err);
        else resolve(markOf(value));
        connection.end(new SeqError('CLOSED', 'the wait is over', false));
      };
      this.#waits.add(connection);
      signal?.addEventListener('abort', stop, { once: true });
    });
  }
}

function markOf([seq, fence, last, knownInMs]) {
  return { known: seq !== null, seq: seq ?? 0, fence: fence ?? 0, last, knownInMs };
}

const aborted = () => new SeqError('ABORTED', 'the caller gave up', false);
const pauseOf = (n) => Math.min(longestPause, firstPause * 2 ** n) * (0.5 + Math.random() / 2);

function sleep(ms, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(aborted());
    const stop = () => {
      clearTimeout(timer);
      reject(aborted());
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
