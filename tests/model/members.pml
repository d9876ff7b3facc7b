/* A change of the stores, while two proposers take a register from each other. A store
 * answers requests of its own list only; an operator decides the lists one after the
 * other and tells them, and whoever takes part goes over when it likes. No clocks: asserts U.
 * It begins with an owner that two stores know of.
 *
 *   without   remove 0, then 1: {0,1,2} W=2, {1,2} W=2, {2} W=1
 *   -DREPLACE 2 by 3: {0,1,2} W=2, {0,1 | 3 learns} W=2, {0,1,3} W=2 */
#ifdef REPLACE
#define N 4
#define MEMBER(v, s) ((v) == 1 && (s) < 3 || (v) == 2 && (s) < 2 || (v) == 3 && (s) != 2)
#define QUORUM(v) 2
#else
#define N 3
#define MEMBER(v, s) ((s) >= (v) - 1)
#define QUORUM(v) ((v) == 3 -> 1 : 2)
#endif
#define LISTS 3
#ifdef REPLACE
#define FIRST 2
#else
#define FIRST 1
#endif
#define P 2
#define OP 3
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef NUMBERS
#define NUMBERS 2
#endif

#include "acceptor.inc"

#define IDLE 0
#define PREP 1
#define TAKE 2
#define OWN  3

byte lv[N];               /* the list of each store */
byte decided = 1, repaired; /* the last list, and the last that was repaired */
bit filled;               /* the learner has all */
byte pv[P];               /* the list of each proposer */
byte st[P], ep[P], tried[P], base[P], high[P], ceil[P], goal[P];
byte got[P];              /* who granted in this phase, a bit each */
byte used;
byte oread, oprom, oacc, omax; /* what the operator has read, of whom */

#define BITS(m) (((m) & 1) + (((m) >> 1) & 1) + (((m) >> 2) & 1) + (((m) >> 3) & 1))

inline forget(p) {
	st[p] = IDLE; ep[p] = 0; base[p] = 0; high[p] = 0; ceil[p] = 0; goal[p] = 0; got[p] = 0
}
inline begin(p, r) {
	d_step {
		st[p] == IDLE && tried[p] < r && r <= ROUNDS ->
		tried[p] = r; ep[p] = EPOCH(r, p + 1); st[p] = PREP
	}
}
#define ANSWERS(s, v) ((s) < N && lv[s] == (v) && MEMBER(v, s))
inline deliver(p, s) {
	d_step {
		st[p] != IDLE && (got[p] & (1 << s)) == 0 && ANSWERS(s, pv[p]) ->
		if
		:: st[p] == PREP ->
			at_prepare(s, ep[p]);
			if
			:: ok -> got[p] = got[p] | (1 << s); base[p] = MAX(base[p], max[s])
			:: else
			fi;
			if
			:: BITS(got[p]) >= QUORUM(pv[p]) && base[p] >= NUMBERS -> forget(p)
			:: BITS(got[p]) >= QUORUM(pv[p]) && base[p] < NUMBERS ->
				high[p] = base[p]; goal[p] = base[p] + 1; base[p] = 0; got[p] = 0; st[p] = TAKE
			:: else
			fi
		:: st[p] != PREP && goal[p] > 0 ->
			at_step(s, ep[p], goal[p]);
			if
			:: ok -> got[p] = got[p] | (1 << s)
			:: else
			fi;
			if
			:: BITS(got[p]) >= QUORUM(pv[p]) -> st[p] = OWN; ceil[p] = goal[p]; goal[p] = 0; got[p] = 0
			:: else
			fi
		:: st[p] != PREP && goal[p] == 0 -> at_step(s, ep[p], ceil[p])
		:: else
		fi
	}
}
inline goOver(p, s) { /* to the list of a store, which tells it */
	d_step {
		lv[s] > pv[p] -> pv[p] = lv[s]; got[p] = 0; base[p] = 0
	}
}
inline giveUp(p) { d_step { st[p] != IDLE -> forget(p) } }
inline step(p) {
	d_step { st[p] == OWN && goal[p] == 0 && high[p] == ceil[p] && ceil[p] < NUMBERS -> goal[p] = ceil[p] + 1 }
}
inline serve(p) {
	d_step {
		st[p] == OWN && high[p] < ceil[p] -> high[p]++;
		assert((used & (1 << high[p])) == 0); /* U */
		used = used | (1 << high[p])
	}
}

/* the operator */
hidden byte i;
#ifdef REPLACE
#define LEARNER (decided == 2)
#define READY(s) ((s) != 3 || filled || decided < 3)
#else
#define LEARNER false
#define READY(s) true
#endif
inline adopt(s) {
	d_step { lv[s] < decided && READY(s) -> lv[s] = decided }
}
#ifdef REPLACE
#define TOLD (ANSWERS(0, decided) + ANSWERS(1, decided) + ANSWERS(2, decided) + ANSWERS(3, decided))
#else
#define TOLD (ANSWERS(0, decided) + ANSWERS(1, decided) + ANSWERS(2, decided))
#endif
#ifdef M_READS_FEWER
#define READS(v) (QUORUM(v) - 1)
#else
#define READS(v) QUORUM(v)
#endif
#define LEFT(s) ((s) < N -> (TOLD) - ANSWERS(s, decided) : (TOLD))
/* of all stores that have the list but s, which are enough or all, at one moment */
inline read(s) {
	d_step {
		repaired < decided && oread == 0 && LEFT(s) >= READS(decided) ->
		for (i : 0 .. N - 1) {
			if
			:: i != s && ANSWERS(i, decided) ->
				oread = oread | (1 << i);
				oprom = MAX(oprom, prom[i]); oacc = MAX(oacc, acc[i]); omax = MAX(omax, max[i])
			:: else
			fi
		}
		i = 0
	}
}
inline fill(s) {
	d_step {
		oread > 0 && (oread & (1 << s)) &&
			(prom[s] < oprom || acc[s] < oacc || max[s] < omax) ->
		at_merge(s, oprom, oacc, omax)
	}
}
#define HAS(s) ((oread & (1 << s)) == 0 || prom[s] >= oprom && acc[s] >= oacc && max[s] >= omax)
#ifdef REPLACE
#define ALLHAVE (HAS(0) && HAS(1) && HAS(2) && HAS(3))
#else
#define ALLHAVE (HAS(0) && HAS(1) && HAS(2))
#endif
inline repair() {
	d_step {
		oread > 0 && ALLHAVE && (!LEARNER || lv[N - 1] == decided) ->
#ifdef REPLACE
		if
		:: LEARNER -> at_merge(3, oprom, oacc, omax); filled = 1
		:: else
		fi;
#endif
		repaired = decided; oread = 0; oprom = 0; oacc = 0; omax = 0
	}
}
#ifdef M_NOT_REPAIRED
#define MAYDECIDE ((TOLD) >= QUORUM(decided))
#else
#define MAYDECIDE (repaired == decided)
#endif
inline decide() {
	d_step { decided < LISTS && MAYDECIDE -> decided++; oread = 0; oprom = 0; oacc = 0; omax = 0 }
}

inline both(p, s) {
	if
	:: deliver(p, s)
	:: goOver(p, s)
	fi
}
inline proposer(p) {
	if
	:: begin(p, 2)
	:: begin(p, 3)
	:: giveUp(p)
	:: step(p)
	:: serve(p)
	fi
}
inline store(s) {
	if
	:: adopt(s)
	:: read(s)
	:: fill(s)
	fi
}

active proctype world() {
	d_step {
		lv[0] = 1; lv[1] = 1; lv[2] = 1; pv[0] = 1; pv[1] = 1;
		prom[FIRST] = EPOCH(1, 1); acc[FIRST] = EPOCH(1, 1); max[FIRST] = 1;
		prom[0] = EPOCH(1, 1); acc[0] = EPOCH(1, 1); max[0] = 1;
		st[0] = OWN; ep[0] = EPOCH(1, 1); ceil[0] = 1; tried[0] = 1; tried[1] = 1
	};
	do
	:: both(0, 0)
	:: both(0, 1)
	:: both(0, 2)
	:: both(1, 0)
	:: both(1, 1)
	:: both(1, 2)
	:: proposer(0)
	:: proposer(1)
	:: store(0)
	:: store(1)
	:: store(2)
	:: read(N)
#ifdef REPLACE
	:: both(0, 3)
	:: both(1, 3)
	:: store(3)
#endif
	:: repair()
	:: decide()
	od
}
