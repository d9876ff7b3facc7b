// One connection to the RESP port of a router: commands go out in order, replies come back in order.
import net from 'node:net';
import tls from 'node:tls';

/** An error of seqsvr, or of this library on the way to it. */
export class SeqError extends Error {
  /**
   * @param {string} code a name of ErrorCode in error.proto, or DISCONNECTED, CLOSED, ABORTED
   * @param {string} message
   * @param {boolean} retryable whether the same call may succeed later
   */
  constructor(code, message, retryable) {
    super(message);
    this.name = 'SeqError';
    this.code = code;
    this.retryable = retryable;
  }
}

// faultOf reads an error reply: "TRYAGAIN NO_QUORUM: text", "ERR OVERFLOW: text", or a text without a code.
function faultOf(text) {
  const word = text.slice(0, text.indexOf(' '));
  const rest = text.slice(word.length + 1);
  const named = /^([A-Z][A-Z_]+): /.exec(rest);
  const other = { NOAUTH: 'UNAUTHENTICATED', WRONGPASS: 'UNAUTHENTICATED', NOPERM: 'FORBIDDEN' }[word];
  const code = named ? named[1] : other ?? (rest.startsWith('unknown command') ? 'UNIMPLEMENTED' : 'BAD_ARGUMENT');
  const err = new SeqError(code, rest, word === 'TRYAGAIN');
  const had = code === 'ID_CONFLICT' && /it has got (\d+) from (\d+)/.exec(rest);
  if (had) Object.assign(err, { count: Number(had[1]), first: Number(had[2]) });
  return err;
}

const CR = 13;
const missing = Symbol('the reply is not complete');

// Replies reads replies from chunks of bytes.
class Replies {
  buf = Buffer.alloc(0);
  pos = 0;

  add(chunk) {
    this.buf = this.pos === this.buf.length ? chunk : Buffer.concat([this.buf.subarray(this.pos), chunk]);
    this.pos = 0;
  }

  // next returns the next reply, or missing.
  next() {
    const from = this.pos;
    const value = this.value();
    if (value === missing) this.pos = from;
    return value;
  }

  value() {
    const { buf } = this;
    const kind = buf[this.pos];
    const end = buf.indexOf(CR, this.pos);
    if (end < 0 || end + 1 >= buf.length) return missing;
    if (kind === 58) { // ':'
      let n = 0;
      for (let i = this.pos + 1; i < end; i++) n = n * 10 + buf[i] - 48;
      this.pos = end + 2;
      return n;
    }
    const line = buf.toString('utf8', this.pos + 1, end);
    this.pos = end + 2;
    switch (String.fromCharCode(kind)) {
      case '+': return line;
      case '-': return faultOf(line);
      case '$': return line === '-1' ? null : this.text(Number(line));
      case '*': return line === '-1' ? null : this.list(Number(line));
      default: throw new SeqError('DISCONNECTED', `not a reply of RESP: ${kind}`, true);
    }
  }

  text(size) {
    if (this.buf.length < this.pos + size + 2) return missing;
    const text = this.buf.toString('utf8', this.pos, this.pos + size);
    this.pos += size + 2;
    return text;
  }

  list(size) {
    const out = [];
    for (let i = 0; i < size; i++) {
      const value = this.value();
      if (value === missing) return missing;
      out.push(value);
    }
    return out;
  }
}

/** command writes a command of RESP. */
export function command(...words) {
  let out = `*${words.length}\r\n`;
  for (const word of words) {
    const text = String(word);
    out += `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
  }
  return out;
}

/**
 * Connection sends the commands that come in one turn of the event loop in one write. onReply gets each call with its
 * reply. onEnd gets the cause and the calls without a reply, once.
 */
export class Connection {
  constructor(address, { tls: secure, token, connectMs }, { onReady, onReply, onEnd, stats }) {
    Object.assign(this, { address, onReady, onReply, onEnd, stats });
    this.ready = this.ended = false;
    this.out = '';
    this.calls = []; // without a reply, from head on
    this.head = 0;
    this.replies = new Replies();
    this.heard = Date.now();
    const at = address.lastIndexOf(':');
    const to = { host: address.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(address.slice(at + 1)) };
    const named = net.isIP(to.host) ? {} : { servername: to.host };
    this.socket = secure ? tls.connect({ ...to, ...named, ...(secure === true ? {} : secure) }) : net.connect(to);
    this.socket.setNoDelay(true);
    this.socket.on(secure ? 'secureConnect' : 'connect', () => {
      if (!token) return this.begin();
      this.socket.write(command('AUTH', token));
    });
    this.socket.on('data', (chunk) => this.read(chunk));
    this.socket.on('error', (err) => this.end(new SeqError('DISCONNECTED', `${address}: ${err.message}`, true)));
    this.socket.on('close', () => this.end(new SeqError('DISCONNECTED', `${address} closed the connection`, true)));
    this.timer = setTimeout(() => this.end(new SeqError('DISCONNECTED', `${address}: no connection in ${connectMs} ms`, true)), connectMs);
  }

  begin() {
    clearTimeout(this.timer);
    this.ready = true;
    this.onReady(this);
  }

  get unanswered() { return this.calls.length - this.head; }

  send(call) {
    if (this.unanswered === 0) this.heard = Date.now();
    this.calls.push(call);
    if (this.out === '') setImmediate(() => this.flush());
    this.out += call.command;
    this.stats.commands++;
  }

  flush() {
    if (this.ended || this.out === '') return;
    this.socket.write(this.out);
    this.out = '';
    this.stats.writes++;
  }

  read(chunk) {
    this.heard = Date.now();
    this.replies.add(chunk);
    try {
      for (let value = this.replies.next(); value !== missing; value = this.replies.next()) this.reply(value);
    } catch (err) {
      this.end(err);
    }
  }

  reply(value) {
    if (!this.ready) { // of AUTH
      if (value instanceof SeqError) this.end(value);
      else this.begin();
      return;
    }
    if (this.head === this.calls.length) { // such as that there are too many connections
      this.end(value instanceof SeqError ? value : new SeqError('DISCONNECTED', `${this.address}: a reply to nothing`, true));
      return;
    }
    const call = this.calls[this.head];
    this.calls[this.head++] = undefined;
    if (this.head === this.calls.length) {
      this.calls.length = this.head = 0;
    } else if (this.head > 65536) {
      this.calls = this.calls.slice(this.head);
      this.head = 0;
    }
    this.onReply(call, value);
  }

  end(cause) {
    if (this.ended) return;
    this.ended = true;
    clearTimeout(this.timer);
    this.socket.destroy();
    const left = this.calls.slice(this.head);
    this.calls = [];
    this.head = 0;
    this.onEnd(this, cause, left);
  }
}
