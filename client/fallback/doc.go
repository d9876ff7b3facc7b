// Package fallback makes snowflake IDs in the caller's process while the service is away.
//
// A Fallback asks the service for a window: ticks under a worker id that no other process has
// until they are over. It asks for a longer one each time that half of the window is over,
// so that at least that much is left when the service goes away. IDs that it makes are
// therefore as unique as those of the service.
//
// What belongs here: the window, and when to make IDs from it. What does not: how the service
// is reached, which is the Client's, by the interface Service; and it takes no sequence.
package fallback
