// Package fallback makes snowflake IDs in the caller's process while the service is unavailable.
//
// A Fallback asks the service for a window: ticks under a worker id that no other process has until the
// window ends. When half of the window is over, it asks for a longer one. So at least half a window is left
// when the service becomes unavailable. The IDs are as unique as the IDs of the service.
//
// What belongs here: the window, and when to make IDs from it. What does not: how to reach the service,
// which the Client does behind the interface Service, and numbers of sequences.
package fallback
