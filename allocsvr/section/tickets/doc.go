// Package tickets keeps the open numbers of one section, so that readers can be told up to where nothing is
// missing.
//
// A ticket is a range of numbers that its writer has not committed yet. The mark of a UID is the number below
// its lowest open number, or its last number if none is open. A reader that goes by marks loses no row:
//
//	R1  safe    no number at or below a mark becomes visible after the mark was answered, if its writer
//	            commits before its deadline; or at any time, if reader and writers use the fence
//	R2  rising  no mark of a UID is below an earlier one, over any failover; "not known yet" is no mark
//	R3  live    the mark reaches the last number a ticket life after the last open ticket, whichever process
//	            died
//
// They rest on these rules:
//
//	           rule                                                          for
//	OPEN       a ticket is open before its numbers are the last ones         R1
//	SPAN       the owner ends a ticket by its own clock, life x 1.025 +      R1, R3
//	           10 ms after it took the numbers: later than the writer, who
//	           counts from the sending, if their clocks run within 1 %
//	TICKET     only the ticket itself ends it, or its time                   R1
//	FENCE      a ticket that its time ended raises the fence of its UID to   R1 with the fence
//	           its last number. A fence never falls, and is in every answer
//	HOLD       an owner that lacks the tickets of the owner before answers   R1, R3
//	           no mark for SPAN from the promise of W stores on
//	LOST       its fence begins at the highest number of the section         R1 with the fence
//	CARRY      a hand-over carries tickets, fences and the hold, with the    R1, R2
//	           time that they have left
//	SEALED     a sealed owner answers no mark, and changes nothing           R2
//	AGAIN      a repeated request has a ticket only while its numbers are    R1
//	           above the mark
//	REAL       an owner forgets tickets of numbers that it may assign to     R1
//	           others, in exact spaces
//
// What belongs here: the rules for the tickets of one section. What does not: the section's lock, lease and
// numbers (package section), and the messages of callers (package api).
package tickets
