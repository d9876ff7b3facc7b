// One feed of snapshots a tab: a stream of server-sent events while the tab is seen, and
// polling where a stream does not come through. The stream is read by fetch and not by EventSource,
// which cannot send a token.

const SILENCE = 3500; // ms without a message after which a stream is given up
const PAUSE = 2000; // between polls
const POLLS = 5; // before a stream is tried again

export class Feed {
  #take; #refused;
  #topics = '';
  #life = null; // ends what is under way
  streams = 0; // opened so far, for tests

  // take gets each snapshot; refused the text of a 401 or 403.
  constructor(take, refused) {
    this.#take = take;
    this.#refused = refused;
    document.addEventListener('visibilitychange', () => this.#again());
    addEventListener('pagehide', () => this.#stop());
    addEventListener('pageshow', () => this.#again());
  }

  // want says what the page in front needs.
  want(topics) {
    if (topics === this.#topics && this.#life) return;
    this.#topics = topics;
    this.#again();
  }

  // again begins anew, with a token that has come for example.
  again() { this.#again(); }

  #stop() {
    this.#life?.abort();
    this.#life = null;
  }

  #again() {
    this.#stop();
    if (document.hidden || !this.#topics) return;
    this.#life = new AbortController();
    this.#run(this.#life.signal);
  }

  async #run(signal) {
    while (!signal.aborted) {
      try {
        if (await this.#stream(signal)) continue; // the server ends each stream, to see that it is read
      } catch (err) {
        if (err instanceof Refused) return this.#refused(err.message);
      }
      for (let i = 0; i < POLLS && !signal.aborted; i++) {
        try {
          this.#give(signal, await (await ask('api/snapshot', { topics: this.#topics }, signal)).json());
        } catch (err) {
          if (err instanceof Refused) return this.#refused(err.message);
        }
        await sleep(PAUSE, signal);
      }
    }
  }

  #give(signal, snapshot) {
    if (!signal.aborted) this.#take(snapshot);
  }

  // stream reads until it ends, and says whether something came; an error when it falls silent.
  async #stream(signal) {
    const quiet = new AbortController();
    let timer = setTimeout(() => quiet.abort(), 2 * SILENCE); // the first one takes longer
    try {
      const reply = await ask('api/stream', { topics: this.#topics }, AbortSignal.any([signal, quiet.signal]));
      this.streams++;
      const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
      let came = false;
      for (let rest = ''; ;) {
        const { value, done } = await reader.read();
        if (done) return came;
        clearTimeout(timer);
        timer = setTimeout(() => quiet.abort(), SILENCE);
        const events = (rest + value).split('\n\n');
        rest = events.pop();
        came ||= events.length > 0;
        for (const event of events) {
          if (event.startsWith('data: ')) this.#give(signal, JSON.parse(event.slice(6)));
        }
      }
    } finally {
      clearTimeout(timer);
      quiet.abort();
    }
  }
}

// Refused is an answer of 401 or 403.
class Refused extends Error {}

// ask makes a request with the token of this tab, if there is one.
export async function ask(path, query, signal) {
  const given = Object.entries(query).filter(([, value]) => value !== '');
  const token = sessionStorage.getItem('token');
  const reply = await fetch(`${path}?${new URLSearchParams(given)}`, {
    signal, cache: 'no-store', credentials: 'same-origin', headers: token ? { Authorization: `Bearer ${token}` } : {},
  });
  if (reply.ok) return reply;
  const { error = reply.statusText } = await reply.json().catch(() => ({}));
  throw reply.status === 401 || reply.status === 403 ? new Refused(error) : new Error(error);
}

function sleep(time, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, time);
    signal.addEventListener('abort', () => { clearTimeout(timer); done(); }, { once: true });
  });
}
