/* Restores into new eras: one counter that is made when it is first used, and its numbers
 * over eras. A read or a write of a quorum is one step here: register.pml is about those.
 * A backup is what the register held at some moment between its begin and its end, or
 * that there was no such register. Any backup of an era before may be restored into any
 * number of eras, and the stores of an era are lost as soon as the next one begins. An
 * owner of an era hands out what that era has confirmed. Asserts U over all eras. */
#ifndef ERAS
#define ERAS 4
#endif
#ifndef BUMP
#define BUMP 4      /* at least by how much all eras together raise the register: the condition of a restore */
#endif
#ifndef BACKUPS
#define BACKUPS 2
#endif

byte era = 0;
bit known;          /* the register is there, in this era */
byte max;           /* its confirmed maximum */
byte floor;         /* where this era makes registers that there are not */
byte high;          /* the owner's last number */
byte grown;         /* by how much owners have raised the register, in all eras */
bit owned;
/* backups: 1 + their era, 0 none; what they know, and the floor of their era */
byte bera[BACKUPS], bmax[BACKUPS], bfloor[BACKUPS];
bit bknown[BACKUPS];
int used;

inline restore(b) {
	d_step {
		bera[b] > 0 && era + 1 < ERAS ->
		era++; owned = 0; high = 0;
		known = bknown[b];
#ifdef M_KNOWN_NOT_RAISED
		max = bmax[b];
#else
#ifdef M_RAISED_ONCE
		max = (known -> bmax[b] + BUMP : 0);
#else
		max = (known -> bmax[b] + BUMP * (era + 1 - bera[b]) : 0);
#endif
#endif
#ifdef M_UNKNOWN_AT_ZERO
		floor = 0
#else
#ifdef M_FLOOR_FROM_BACKUP /* forgets the floor that the backup's era had itself */
		floor = BUMP * (era + 1 - bera[b])
#else
		floor = bfloor[b] + BUMP * (era + 1 - bera[b])
#endif
#endif
	}
}
inline backup(b) {
	d_step { bera[b] == 0 -> bera[b] = era + 1; bknown[b] = known; bmax[b] = max; bfloor[b] = floor }
}

active proctype world() {
	do
	:: d_step { !known -> known = 1; max = floor; owned = 0 }
	:: d_step { known && !owned -> owned = 1; high = max }     /* taken over */
	:: d_step { owned -> owned = 0; high = 0 }                 /* and lost */
	:: d_step { owned && high == max && grown < BUMP -> grown++; max++ } /* a step */
	:: d_step {
		owned && high < max -> high++;
		assert((used & (1 << high)) == 0); /* U */
		used = used | (1 << high)
	}
	:: backup(0)
	:: backup(1)
	:: restore(0)
	:: restore(1)
	od
}
