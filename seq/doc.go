// Package seq holds the nouns of the system: users, sequences, sections,
// epochs, registers, the section mapping and the route table.
//
// It uses the standard library only and does no I/O, so that every tier, and
// every user of the SDK, can speak of the same things by the same types.
// What belongs here is what two tiers must agree on; what only one tier needs
// lives there.
package seq
