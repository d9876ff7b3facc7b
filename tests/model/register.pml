/* One register, N stores, two proposers: everything that may happen, in any order.
 *
 *   -DLEASE   leases, grace and time; numbers go out under a valid lease only. Asserts
 *             U, M and I7. Without it nothing knows a clock, stores let everybody in, and
 *             numbers go out from whatever is confirmed. Asserts U.
 *   -DSTRICT  without LEASE, a section of a strict space: anybody preempts it at any time, and a
 *             number is answered once W stores showed its epoch as the promised one. Asserts U, M
 *   -DFLAT    without numbers: asserts I7 only
 *   -DOWNED   begins with an owner
 *   -DPUNCTUAL no request comes late, though it may get lost
 *   -DHAND    hand-over: seal, offer or park, release, take, with `also`
 *   -DREPAIR  an operator merges the states of the stores, may die at any moment
 *   -DOLD     an older copy of one store's disk is put back, after fellows were told
 *   -DFIRST   with it: put back while no take is under way that rests on the disk, told or not.
 *             Owners tell fellows before they serve, and make no further steps
 *
 * A request is under way from its sending until the store takes it, which may be never; it
 * may also be left behind, taken much later, and its answer not heard. A proposer that
 * died is one that does nothing any more.
 *
 * These simplifications miss nothing:
 *
 *   - A request at a store, its commit and its answer are one action, because no answer
 *     leaves before the commit.
 *   - The W-th answer ends a phase at once. Serving is an action of its own, so it may come
 *     as late as it likes.
 *   - An owner may repeat a confirmed step; a refused request may come again.
 *   - Times are remaining times. A lease counts from its sending, and the holder believes
 *     in as much as the store keeps: the worst case.
 *   - Without LEASE no proposer is kept out and owners use every confirmed number, so U
 *     rests on no clock.
 *
 * ROUNDS is the highest round of a proposer, TRIES the takes of each, NUMBERS the numbers of
 * the section. */
#ifndef N
#define N 3
#endif
#define P 2
#define OP 3
#ifndef T
#define T 2         /* ticks of a lease */
#endif
#define RESERVE 1   /* ticks of a reservation */
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef TRIES
#define TRIES 99    /* of one proposer, if that is to be bounded beside the rounds */
#endif
#ifndef NUMBERS
#define NUMBERS 3
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef REPAIRS
#define REPAIRS 3
#endif

#include "acceptor.inc"

#ifdef M_QUORUM_LESS
#define QUORUM (W - 1)
#else
#define QUORUM W
#endif
#ifdef M_LEASE_LESS
#define LEASEQUORUM (W - 1)
#else
#define LEASEQUORUM W
#endif

#define IDLE 0
#define PREP 1 /* waits for promises */
#define TAKE 2 /* waits for its first step */
#define OWN  3
#define SEAL 4 /* never a number again under ep */

byte st[P], ep[P];
byte tries[P];                    /* how often it has tried */
byte tried[P];                    /* highest round that it has asked for and not won */
byte base[P], bacc[P];            /* highest max and accepted epoch of the promises */
byte high[P], ceil[P], goal[P];   /* last number handed out, confirmed, asked for */
#define AT(p, s) ((p) * N + (s))
bit got[P * N];                   /* granted in this phase */

/* one request that was left behind */
byte lateKind, lateEp, lateMax, lateAt;
byte crashes = CRASHES;

#ifdef LEASE
byte hrem[P * N]; /* what is left of the lease there, counted from the sending */
byte last;        /* highest number handed out */
#define VALID(p) (st[p] == OWN && ((hrem[AT(p,0)] > 0) + (hrem[AT(p,1)] > 0) + (hrem[AT(p,2)] > 0)) >= LEASEQUORUM)
#else
byte used;        /* bit n: number n was handed out */
#endif

#ifdef STRICT
/* a request at p: 1 it came, when numbers up to flr had been answered; 2 it took num under aep */
byte asks[P], flr[P], num[P], aep[P];
bit seen[P * N]; /* looked at since, and found standing */
byte answered;   /* the highest number answered */
#define SEEN(p) (seen[AT(p,0)] + seen[AT(p,1)] + seen[AT(p,2)])
#ifdef M_LOOK_LESS
#define LOOKS (W - 1)
#else
#define LOOKS W
#endif
#ifdef M_LOOK_BEFORE /* the looks for the request before stand for this one */
#define LOOKABLE(p) (asks[p] != 1)
#else
#define LOOKABLE(p) (asks[p] == 2)
#endif
#endif

#ifdef HAND
/* sealed counters that p may go on from */
byte hep[P], hhi[P], hal[P];
bit hset[P];
/* and those last offered or parked: a copy of them may come to anybody at any time */
byte pep, phi;
bit pset;
#endif

#ifdef REPAIR
byte repairs = REPAIRS;
bit op;
byte oprom, oacc, omax;
#endif

#ifdef OLD
/* copy: 1 of this store's disk there is one, 2 it was put back; sprom.. is what it holds */
byte copy[N];
byte sprom, sacc, smax;
bit newer;       /* the disk has commits that the copy lacks */
bit knows[N];    /* durable: this store remembers more commits of that disk than the copy has */
bit heard[P];    /* the session has heard of them */
bit asked[N];    /* was asked by the store that started, and knew of no more */
bit distrusted;  /* the store with the copy never votes again */
#define KNOWN (knows[0] + knows[1] + knows[2] >= W - 1)
#endif

#define COUNT(p) (got[AT(p,0)] + got[AT(p,1)] + got[AT(p,2)])

/* Stores are alike: their records are kept in an order, so that states that differ only
 * in which is which are one. */
hidden byte x;
#define SWAP(a, b) x = a; a = b; b = x
inline swap(i, j) {
	SWAP(prom[i], prom[j]); SWAP(acc[i], acc[j]); SWAP(max[i], max[j]);
	SWAP(got[AT(0,i)], got[AT(0,j)]); SWAP(got[AT(1,i)], got[AT(1,j)]);
	if
	:: lateKind > 0 && lateAt == i -> lateAt = j
	:: lateKind > 0 && lateAt == j -> lateAt = i
	:: else
	fi;
#ifdef LEASE
	SWAP(lrem[i], lrem[j]); SWAP(grace[i], grace[j]); SWAP(resto[i], resto[j]);
	SWAP(resrem[i], resrem[j]); SWAP(prot[i], prot[j]); SWAP(proth[i], proth[j]); SWAP(rel[i], rel[j]);
	SWAP(hrem[AT(0,i)], hrem[AT(0,j)]); SWAP(hrem[AT(1,i)], hrem[AT(1,j)]);
#endif
#ifdef STRICT
	SWAP(seen[AT(0,i)], seen[AT(0,j)]); SWAP(seen[AT(1,i)], seen[AT(1,j)]);
#endif
#ifdef OLD
	SWAP(mute[i], mute[j]); SWAP(copy[i], copy[j]); SWAP(knows[i], knows[j]); SWAP(asked[i], asked[j]);
#endif
	skip
}

#ifdef LEASE
#define KEY(s) (((((prom[s] * 16 + acc[s]) * 8 + max[s]) * 4 + lrem[s]) * 4 + hrem[AT(0,s)]) * 4 + hrem[AT(1,s)]) * 64 + KEY2(s)
#define KEY2(s) (got[AT(0,s)] * 2 + got[AT(1,s)])
#else
#ifdef OLD
#define KEY(s) (((((prom[s] * 16 + acc[s]) * 8 + max[s]) * 4 + got[AT(0,s)]) * 4 + got[AT(1,s)]) * 4 + copy[s]) * 4 + knows[s] * 2 + asked[s]
#else
#define KEY(s) ((((prom[s] * 16 + acc[s]) * 8 + max[s]) * 4 + got[AT(0,s)]) * 4 + got[AT(1,s)])
#endif
#endif
inline order(i, j) {
	if
	:: (KEY(i)) > (KEY(j)) -> swap(i, j)
	:: else
	fi
}
inline canon() {
#ifndef PLAIN
	order(0, 1); order(1, 2); order(0, 1);
#endif
	skip
}

hidden byte i;
inline quiet(p) {
	got[AT(p,0)] = 0; got[AT(p,1)] = 0; got[AT(p,2)] = 0
}
inline forget(p) {
	quiet(p);
	st[p] = IDLE; ep[p] = 0; base[p] = 0; bacc[p] = 0; high[p] = 0; ceil[p] = 0; goal[p] = 0;
#ifdef LEASE
	for (i : 0 .. N - 1) { hrem[AT(p,i)] = 0 }
	i = 0;
#endif
	skip
}
inline committed(s) {
#ifdef OLD
	if
	:: wrote && copy[s] == 1 -> newer = 1
	:: else
	fi;
#endif
	skip
}
/* Replies to PREPARE and STEP say how many commits the disk has. */
inline carried(p, s) {
#if defined(OLD) && !defined(M_REPLIES_SAY_NOTHING)
	if
	:: ok && copy[s] == 1 && newer -> heard[p] = 1
	:: else
	fi;
#endif
	skip
}
/* what all stores but s have promised */
#define LOOK(s) ((s) == 0 -> MAX(prom[1], prom[2]) : ((s) == 1 -> MAX(prom[0], prom[2]) : MAX(prom[0], prom[1])))

/* W promises: from where it goes on */
inline promised(p) {
#ifdef FLAT
	goal[p] = 1;
#else
	high[p] = base[p]; goal[p] = base[p] + 1;
#endif
#ifdef HAND
	if
	:: hset[p] ->
		if
#ifdef M_SEALED_ALWAYS_USED
		:: hhi[p] <= base[p] ->
#else
		:: (bacc[p] == hep[p] || hal[p] > 0 && bacc[p] == hal[p]) && hhi[p] <= base[p] ->
#endif
			high[p] = hhi[p]; goal[p] = MAX(base[p], hhi[p] + 1); bacc[p] = hep[p]
		:: else
		fi;
		hset[p] = 0; hep[p] = 0; hhi[p] = 0; hal[p] = 0
	:: else
	fi;
#else
	bacc[p] = 0;
#endif
	base[p] = 0; quiet(p);
	if
	:: goal[p] > NUMBERS -> forget(p) /* the end of the numbers that are looked at */
	:: else -> st[p] = TAKE
	fi
}

#ifdef HAND
/* keep is heirlooms.keep: the counters of a higher epoch replace those of a lower one */
inline keep(p, e, h, also) {
	if
	:: !hset[p] || hep[p] < e -> hset[p] = 1; hep[p] = e; hhi[p] = h; hal[p] = also
	:: else
	fi
}
#endif

/* ACQUIRE: a look at W stores, all but s, tells the round */
inline begin(p, s) {
	d_step {
		st[p] == IDLE && MAX(RND(LOOK(s)), tried[p]) < ROUNDS && tries[p] < TRIES ->
#if TRIES < 99
		tries[p]++;
#endif
		ep[p] = EPOCH(MAX(RND(LOOK(s)), tried[p]) + 1, p + 1);
		st[p] = PREP; canon()
	}
}

/* A store takes the request of p's phase. A refused one may come again, and so may what an
 * owner has confirmed. The W-th answer ends the phase: what p does then it does by itself. */
inline deliver(p, s) {
	d_step {
		st[p] != IDLE && st[p] != SEAL && !got[AT(p,s)] ->
		if
		:: st[p] == PREP ->
			at_prepare(s, ep[p]);
			if
			:: ok ->
				got[AT(p,s)] = 1; base[p] = MAX(base[p], max[s]); bacc[p] = MAX(bacc[p], acc[s])
			:: else
			fi;
			if
			:: COUNT(p) >= QUORUM -> promised(p)
			:: else
			fi
		:: else ->
#ifdef FLAT
			x = 0;
#else
			x = (goal[p] > 0 -> goal[p] : ceil[p]);
#endif
			at_step(s, ep[p], x);
			if
			:: ok && goal[p] > 0 ->
				got[AT(p,s)] = 1;
				if
				:: COUNT(p) >= QUORUM ->
					st[p] = OWN; ceil[p] = goal[p]; goal[p] = 0; bacc[p] = 0; quiet(p)
				:: else
				fi
			:: else
			fi
		fi;
		committed(s); carried(p, s); canon()
	}
}

/* The request goes another, slower way: it comes later, and its answer is not heard. */
#ifdef FLAT
#define LATEMAX(p) 0
#else
#define LATEMAX(p) goal[p]
#endif
#define LATE_PREPARE 1
#define LATE_STEP    2
inline leave(p, s) {
	d_step {
		lateKind == 0 && !got[AT(p,s)] && (st[p] == TAKE || st[p] == OWN && goal[p] > 0
#ifdef LATEPREPARE
			|| st[p] == PREP
#endif
		) ->
		lateKind = (st[p] == PREP -> LATE_PREPARE : LATE_STEP);
		lateEp = ep[p]; lateMax = LATEMAX(p); lateAt = s; canon()
	}
}
inline arrive() {
	d_step {
		lateKind > 0 ->
		if
		:: lateKind == LATE_PREPARE -> at_prepare(lateAt, lateEp)
		:: lateKind == LATE_STEP -> at_step(lateAt, lateEp, lateMax)
		:: else
		fi;
		committed(lateAt);
		lateKind = 0; lateEp = 0; lateMax = 0; lateAt = 0; canon()
	}
}

/* It gives up; it never asks for the round again. After a step of unknown outcome it keeps what it would have
 * gone on from. */
inline abandon(p) {
	d_step {
		st[p] == PREP || st[p] == TAKE ->
#ifndef M_ROUND_AGAIN
		tried[p] = (st[p] == PREP -> RND(ep[p]) : tried[p]);
#endif
#ifdef HAND
		if
		:: st[p] == TAKE -> keep(p, bacc[p], high[p], ep[p])
		:: else
		fi;
#endif
		forget(p); canon()
	}
}

inline lose(p) {
	d_step { st[p] == OWN -> forget(p); canon() }
}

/* STEP */
inline step(p) {
	d_step {
		st[p] == OWN && goal[p] == 0 && ceil[p] < NUMBERS && high[p] == ceil[p] ->
		goal[p] = ceil[p] + 1; canon()
	}
}

/* SERVE */
#ifdef FIRST /* the renewals of its lease have told W stores, that one or W-1 fellows */
#define SAID(p) (!heard[p] || KNOWN)
#else
#define SAID(p) true
#endif
inline serve(p) {
	d_step {
#ifdef LEASE
		st[p] == OWN && high[p] < ceil[p] && VALID(p) ->
		high[p]++;
		assert(high[p] > last); /* U and M */
		last = high[p]
#else
		st[p] == OWN && high[p] < ceil[p] && SAID(p) ->
		high[p]++;
		assert((used & (1 << high[p])) == 0); /* U */
		used = used | (1 << high[p])
#endif
	}
}

#ifdef STRICT
inline unlook(p) { seen[AT(p,0)] = 0; seen[AT(p,1)] = 0; seen[AT(p,2)] = 0 }
inline come(p) {
	d_step { st[p] == OWN && asks[p] == 0 -> asks[p] = 1; flr[p] = answered }
}
inline takes(p) {
	d_step {
		st[p] == OWN && asks[p] == 1 && high[p] < ceil[p] ->
		high[p]++; num[p] = high[p]; asks[p] = 2;
#ifdef M_LOOK_BEFORE
		if
		:: aep[p] != ep[p] -> unlook(p)
		:: else
		fi;
#else
		unlook(p);
#endif
		aep[p] = ep[p]; canon()
	}
}
/* A look, which an owner that has given the section up may still make for what it took. */
inline look(p, s) {
	d_step {
		LOOKABLE(p) && aep[p] > 0 && !seen[AT(p,s)] ->
		if
		:: prom[s] == aep[p] -> seen[AT(p,s)] = 1
		:: else -> asks[p] = 0; flr[p] = 0; num[p] = 0; aep[p] = 0; unlook(p)
		fi;
		canon()
	}
}
inline reply(p) {
	d_step {
		asks[p] == 2 && SEEN(p) >= LOOKS ->
		assert(num[p] > flr[p]);               /* M */
		assert((used & (1 << num[p])) == 0);   /* U */
		used = used | (1 << num[p]);
		answered = MAX(answered, num[p]);
		asks[p] = 0; flr[p] = 0; num[p] = 0;
#ifndef M_LOOK_BEFORE
		aep[p] = 0; unlook(p);
#endif
		canon()
	}
}
/* its caller has gone, or the section has */
inline gone(p) {
	d_step { asks[p] == 1 -> asks[p] = 0; flr[p] = 0 }
}
#endif

#ifdef LEASE
/* RENEW. The lease counts from the sending, so its holder believes in no more than the store
 * keeps; to believe in just as much is the worst of that, and all that is looked at. */
inline renew(p, s) {
	d_step {
		st[p] == OWN && hrem[AT(p,s)] < T && VOTES(s) ->
		at_renew(s, ep[p]);
		hrem[AT(p,s)] = (ok -> T : 0);
		assert(!(VALID(0) && VALID(1))); /* I7 */
		canon()
	}
}
#ifdef M_COUNTED_FROM_ANSWER
inline answer(p, s) { /* a tick later */
	d_step {
		st[p] == OWN && prom[s] == ep[p] && lrem[s] == T - 1 -> hrem[AT(p,s)] = T;
		assert(!(VALID(0) && VALID(1))); canon()
	}
}
#endif
#define LESS(v) v = (v > 0 -> v - 1 : 0)
inline tick() {
	d_step {
		for (i : 0 .. N - 1) {
			LESS(lrem[i]); LESS(grace[i]); LESS(prot[i]); LESS(resrem[i]);
			resto[i] = (resrem[i] > 0 -> resto[i] : 0);
			proth[i] = (prot[i] > 0 -> proth[i] : 0)
		}
		for (i : 0 .. P * N - 1) { LESS(hrem[i]) }
		i = 0;
		canon()
	}
}
#endif

#ifdef HAND
inline seal(p) {
	d_step {
		st[p] == OWN ->
#ifndef M_RELEASE_BEFORE_SEAL
		st[p] = SEAL; quiet(p); goal[p] = 0;
#endif
		pset = 1; pep = ep[p]; phi = high[p]; canon()
	}
}
/* the sealed counters reach somebody: an offer, a file, a copy of a file */
inline adopt(p) {
	d_step { pset && (!hset[p] || hep[p] < pep) -> keep(p, pep, phi, 0) }
}
inline unseal(p) { /* handed over, or reclaimed */
	d_step { st[p] == SEAL -> forget(p); canon() }
}
#ifdef LEASE
#ifdef M_RELEASE_BEFORE_SEAL
#define RELEASING(p) (st[p] == OWN && pset)
#else
#define RELEASING(p) (st[p] == SEAL)
#endif
inline release(p, s) {
	d_step {
		RELEASING(p) && prom[s] == ep[p] && !rel[s] -> at_release(s, ep[p], 2 - p); hrem[AT(p,s)] = 0; canon()
	}
}
#endif
#endif

/* a store stops, in order or not, and starts */
inline restart(s, clean) {
	d_step {
#ifdef LEASE
		crashes > 0 -> crashes--; at_start(s, clean); canon()
#else
		true -> at_start(s, clean); canon() /* all that counts is on the disk */
#endif
	}
}

#ifdef REPAIR
/* An operator, whether the one before has ended or died, reads all stores but s, which are W
 * or all, and gives stores what they lack, or some of it, until it ends or dies. */
inline repair(s) {
	d_step {
		repairs > 0 && op == 0 ->
		repairs--; op = 1;
		for (i : 0 .. N - 1) {
			if
			:: i != s -> oprom = MAX(oprom, prom[i]); oacc = MAX(oacc, acc[i]); omax = MAX(omax, max[i])
			:: else
			fi
		}
		i = 0; canon()
	}
}
inline fill(s) {
	d_step {
		op && (oprom > prom[s] || oacc > acc[s] || omax > max[s]) ->
		at_merge(s, oprom, oacc, omax); canon()
	}
}
inline endRepair() {
	d_step { op -> op = 0; oprom = 0; oacc = 0; omax = 0; canon() }
}
#endif

#ifdef OLD
inline snapshot(s) {
	d_step {
		copy[0] + copy[1] + copy[2] == 0 ->
		copy[s] = 1; sprom = prom[s]; sacc = acc[s]; smax = max[s]; canon()
	}
}
/* The owner's renewals: it hears of the commits of the store, and tells its fellows. */
inline hear(p, s) {
	d_step { st[p] == OWN && copy[s] == 1 && newer && !heard[p] -> heard[p] = 1; canon() }
}
inline tell(p, s) {
	d_step { st[p] == OWN && copy[s] == 0 && heard[p] && !knows[s] -> knows[s] = 1; canon() }
}
/* A session that has seen more renews there. */
inline caught(p, s) {
	d_step { st[p] == OWN && copy[s] == 2 && heard[p] && !distrusted -> distrusted = 1; mute[s] = 1; canon() }
}
#ifdef UNSEEN
#define TOLD true
#else
#ifdef FIRST
#define RESTS(p) (st[p] != IDLE && heard[p])
#define TOLD (KNOWN || !RESTS(0) && !RESTS(1))
#else /* W-1 of its fellows have been told of what the copy lacks */
#define TOLD KNOWN
#endif
#endif
inline putBack(s) {
	d_step {
		copy[s] == 1 && newer && TOLD ->
		copy[s] = 2; prom[s] = sprom; acc[s] = sacc; max[s] = smax;
		sprom = 0; sacc = 0; smax = 0;
		vacate(s);
#ifndef M_VOTES_AT_START
		mute[s] = 1;
#endif
		canon()
	}
}
#ifdef M_ASKS_FEWER
#define FELLOWS (N - W)
#else
#define FELLOWS (N - W + 1)
#endif
inline ask(s) { /* a fellow, s, what it remembers */
	d_step {
		mute[0] + mute[1] + mute[2] == 1 && !distrusted && copy[s] == 0 && !asked[s] ->
		if
		:: knows[s] -> distrusted = 1
		:: else -> asked[s] = 1
		fi;
		canon()
	}
}
#ifdef UNASKED /* the grace has passed, and fellows did not answer */
#define ASKED true
#else
#define ASKED (asked[0] + asked[1] + asked[2] >= FELLOWS)
#endif
inline vote(s) {
	d_step {
		mute[s] && !distrusted && ASKED -> mute[s] = 0; canon()
	}
}
inline fellowRestarts(s) {
	d_step {
		crashes > 0 && copy[s] != 2 -> crashes--;
#ifdef M_FELLOWS_FORGET
		knows[s] = 0;
#endif
		at_start(s, 0); canon()
	}
}
#endif

/* The choices, for each proposer and store. */
inline both(p, s) {
	if
	:: begin(p, s)
	:: deliver(p, s)
#ifdef STRICT
	:: look(p, s)
#endif
#ifndef PUNCTUAL
	:: leave(p, s)
#endif
#ifdef LEASE
	:: renew(p, s)
#ifdef M_COUNTED_FROM_ANSWER
	:: answer(p, s)
#endif
#ifdef HAND
	:: release(p, s)
#endif
#endif
#ifdef OLD
	:: hear(p, s)
	:: tell(p, s)
	:: caught(p, s)
#endif
	fi
}
inline proposer(p) {
	if
	:: abandon(p)
	:: lose(p)
#ifndef FLAT
#ifndef FIRST
	:: step(p)
#endif
#ifdef STRICT
	:: come(p)
	:: takes(p)
	:: reply(p)
	:: gone(p)
#else
	:: serve(p)
#endif
#endif
#ifdef HAND
	:: seal(p)
	:: adopt(p)
	:: unseal(p)
#endif
	fi
}
inline store(s) {
	if
#ifdef OLD
	:: snapshot(s)
	:: putBack(s)
	:: ask(s)
	:: vote(s)
	:: fellowRestarts(s)
#else
#ifdef LEASE
	:: restart(s, 0)
	:: restart(s, 1)
#endif
#ifdef M_PROMISE_VOLATILE
	:: restart(s, 0)
#endif
#endif
#ifdef REPAIR
	:: repair(s)
	:: fill(s)
#endif
	fi
}

active proctype world() {
#ifdef OWNED /* begins with an owner that one store has not heard of */
	d_step {
		prom[1] = EPOCH(1, 1); prom[2] = EPOCH(1, 1);
		st[0] = OWN; ep[0] = EPOCH(1, 1); ceil[0] = 1;
#ifndef FLAT
		max[1] = 1; max[2] = 1; acc[1] = EPOCH(1, 1); acc[2] = EPOCH(1, 1)
#endif
	};
#endif
	do
	:: both(0, 0)
	:: both(0, 1)
	:: both(0, 2)
	:: both(1, 0)
	:: both(1, 1)
	:: both(1, 2)
	:: proposer(0)
	:: proposer(1)
#if defined(LEASE) || defined(OLD) || defined(REPAIR) || defined(M_PROMISE_VOLATILE)
	:: store(0)
	:: store(1)
	:: store(2)
#endif
#ifndef PUNCTUAL
	:: arrive()
#endif
#ifdef LEASE
	:: tick()
#endif
#ifdef REPAIR
	:: endRepair()
#endif
	od
}
