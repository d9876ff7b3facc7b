/** A sequence: a uid of 64 bits, a string key, or either in a space of its own. */
export type Key = number | bigint | string | { space?: string; uid: number | bigint } | { space?: string; name: string };

export interface ClientOptions {
  /** host:port of the RESP ports of routers; several, so that another one serves when one dies. Default 127.0.0.1:6379. */
  addrs?: string[];
  /** The caller's token, if the cluster has roles. */
  token?: string;
  /** TLS: true, or what tls.connect of node:tls takes, such as { ca, cert, key }. */
  tls?: boolean | import('node:tls').ConnectionOptions;
  /** The space of keys that name none. Default: the default space. */
  space?: string;
  /** How long a call may take, with all of its attempts. Default 10,000. */
  timeoutMs?: number;
  /** How long a connection may take to be there. Default 3,000. */
  connectMs?: number;
  /** After which silence a router counts as lost. Default 5,000. */
  silenceMs?: number;
  /** How many calls may be without an answer; more fail with OVERLOADED. Default 100,000. */
  maxQueue?: number;
  /** How many waits there may be, each with a connection. Default 100. */
  maxWaits?: number;
}

export interface CallOptions {
  timeoutMs?: number;
  signal?: AbortSignal;
}

export interface TakeOptions extends CallOptions {
  /** How many numbers, 1 to 1,048,576. Default 1. */
  count?: number;
  /** In a space of mode=exact: the same id gets the same numbers again. */
  requestId?: string;
  /** When the id was first sent, if not now: keep it beside the id. */
  firstSentMs?: number;
}

export interface OpenOptions extends TakeOptions {
  /** The life of the ticket. Default: the space's. */
  lifeMs?: number;
}

export interface WaitOptions {
  /** Default 25,000. */
  withinMs?: number;
  signal?: AbortSignal;
}

/** The numbers first to last, both included. */
export interface Range {
  first: number;
  last: number;
  /** The request id had these numbers before: nothing was taken. */
  replayed: boolean;
}

/** A Range of nextBatch. If it has an error, it has no numbers. */
export interface BatchRange extends Range {
  error?: SeqError;
}

/** Numbers that hold the mark of their key until done, cancel, or the end of their life. */
export interface Ticket extends Range {
  key: Key;
  id: number;
  lifeMs: number;
  /** When it ends by this machine's clock, in ms since 1970: commit before. */
  deadlineMs: number;
}

export interface Mark {
  /** If false, seq and fence are 0, and the mark is known in knownInMs. */
  known: boolean;
  /** The number up to which nothing is missing. */
  seq: number;
  fence: number;
  /** At or above the last number that was taken. */
  last: number;
  knownInMs: number;
}

export class SeqError extends Error {
  /** A name of ErrorCode in error.proto without its prefix, or DISCONNECTED, CLOSED, ABORTED, UNIMPLEMENTED. */
  code: string;
  /** The same call may succeed later. The library has repeated it until its deadline. */
  retryable: boolean;
  /** Of ID_CONFLICT: the numbers that the request id has got. */
  first?: number;
  count?: number;
  constructor(code: string, message: string, retryable: boolean);
}

export class Client {
  constructor(options?: ClientOptions);
  /** The address in use. */
  readonly address: string;
  readonly stats: { commands: number; writes: number; retries: number; connections: number };
  /** Takes the next number. */
  next(key: Key, options?: TakeOptions): Promise<number>;
  /** Takes count numbers in a row. */
  take(key: Key, options?: TakeOptions): Promise<Range>;
  /** Takes numbers of many keys. An entry that failed has an error. */
  nextBatch(asks: (Key | ({ key: Key } & TakeOptions))[], options?: TakeOptions): Promise<BatchRange[]>;
  /** The numbers that a request id has got, or null. */
  lookup(key: Key, requestId: string, options?: CallOptions): Promise<Range | null>;
  /** The last number that was taken, or a bound above it after a crash; 0 if there is none. */
  current(key: Key, options?: CallOptions): Promise<number>;
  /** Lifts a key to atLeast, and gives the number that it has reached. */
  raise(key: Key, atLeast: number, options?: CallOptions): Promise<number>;
  /** Takes snowflake IDs. They are text, because a number of JavaScript has 53 bits. */
  generate(namespace?: string, count?: number, options?: CallOptions): Promise<string[]>;
  /** Takes count numbers of a segment tag in a row. */
  segment(tag: string, count?: number, options?: CallOptions): Promise<Range>;
  /** Takes numbers with a ticket, in a space with tickets. */
  open(key: Key, options?: OpenOptions): Promise<Ticket>;
  /** Ends a ticket, since its numbers were committed. */
  done(ticket: Pick<Ticket, 'key' | 'first' | 'id'>, options?: CallOptions): Promise<void>;
  /** Ends a ticket whose numbers will not be committed. */
  cancel(ticket: Pick<Ticket, 'key' | 'first' | 'id'>, options?: CallOptions): Promise<void>;
  /** The mark of a key. */
  mark(key: Key, options?: CallOptions): Promise<Mark>;
  /** The mark, once it is above after, and after withinMs at the latest. A wait holds a connection. */
  wait(key: Key, after: number, options?: WaitOptions): Promise<Mark>;
  /** The mark each time that it rises; read what is above after, up to seq. */
  watch(key: Key, after?: number, options?: { signal?: AbortSignal }): AsyncGenerator<Mark & { after: number }, void, void>;
  /** Ends all connections. Calls without an answer fail with CLOSED. */
  close(): void;
}
