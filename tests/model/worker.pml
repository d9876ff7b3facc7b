/* Worker ids over eras: one id, whose register holds a mark in time. Its owner may give the
 * id to numbers of the moments (mark before, mark], its window; once each. Time is that
 * of the world, in ticks. A store's clock may differ from it; of the N stores of an era at
 * most N-W do, by up to WRONG ticks either way. A store takes no mark more than MARGIN
 * ahead of its clock, and starts a register that it does not have at its clock at its
 * first start + MARGIN. A backup knows the register as it was at some moment, or does not
 * know it; windows of an era that was lost go on being used until their end. Asserts that
 * no moment is used twice. */
#define N 3
#define W 2
#ifndef MARGIN
#define MARGIN 2
#endif
#ifndef ERAS
#define ERAS 3
#endif
#ifndef TIME
#define TIME 8
#endif
#ifndef WRONG
#define WRONG 2
#endif
#define MAX(a, b) ((a) > (b) -> (a) : (b))

byte now = WRONG;        /* so that no clock is below 0 */
byte era;
byte clock[N];           /* WRONG + by how much it is ahead: WRONG is right */
byte floor[N];           /* of this era's stores */
bit known; byte mark;    /* the register: what W stores have of it */
byte from[ERAS], to[ERAS]; /* the window of the era's owner: (from, to] */
bit backed; bit bknown; byte bmark;
int used;

#define CLOCK(i) (now + clock[i] - WRONG)
inline born() { /* the stores of this era start for the first time */
	atomic {
#ifndef M_CLOCKS_ALL_WRONG
		clock[0] = WRONG; clock[1] = WRONG;
#else
		clock[0] = WRONG; if :: clock[1] = 0 :: clock[1] = WRONG :: clock[1] = 2 * WRONG fi;
#endif
		if :: clock[2] = 0 :: clock[2] = WRONG :: clock[2] = 2 * WRONG fi;
		floor[0] = 0; floor[1] = 0; floor[2] = 0;
		if
		:: era > 0 ->
#ifdef M_FLOOR_ZERO
			skip
#else
#ifdef M_FLOOR_NO_MARGIN
			floor[0] = CLOCK(0); floor[1] = CLOCK(1); floor[2] = CLOCK(2)
#else
#ifdef M_FLOOR_AT_RESTORERS_CLOCK
			floor[0] = now - WRONG + MARGIN; floor[1] = floor[0]; floor[2] = floor[0]
#else
			floor[0] = CLOCK(0) + MARGIN; floor[1] = CLOCK(1) + MARGIN; floor[2] = CLOCK(2) + MARGIN
#endif
#endif
#endif
		:: else
		fi
	}
}
/* The owner of era e uses a moment of its window. Its clock is as it likes. */
inline use(e) {
	d_step {
		era >= e && from[e] < to[e] -> from[e] = from[e] + 1;
		assert((used & (1 << from[e])) == 0);
		used = used | (1 << from[e])
	}
}
#define BASE(i, j) MAX(MAX(floor[i], floor[j]), (known -> mark : 0))
#define WINDOW(i, j) (MAX(BASE(i, j), now - 1) + 1)
/* Two stores of this era, i and j, promise and take a mark: the base is the highest of what
 * they have, and a new window follows it. */
inline window(i, j) {
	d_step {
		from[era] == to[era] && WINDOW(i, j) <= CLOCK(i) + MARGIN && WINDOW(i, j) <= CLOCK(j) + MARGIN ->
		from[era] = WINDOW(i, j) - 1; to[era] = WINDOW(i, j);
		known = 1; mark = to[era]
	}
}

active proctype world() {
	born();
	do
	:: d_step { now < TIME -> now++ }
	:: window(0, 1)
	:: window(0, 2)
	:: window(1, 2)
	:: use(0)
	:: use(1)
	:: use(2)
	:: d_step { !backed -> backed = 1; bknown = known; bmark = mark }
	:: backed && era + 1 < ERAS ->
		atomic { era++; known = bknown; mark = bmark; born() }
	od
}
