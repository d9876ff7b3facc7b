// Package watch keeps, for each watcher, the keys that changed since it last looked.
//
// A watch is level-triggered: a change of a key marks the key as changed for its watchers, and the watcher reads
// the present value when it gets to the key. Changes of a key that is marked already are merged. The memory is
// bounded by keys and not by changes, and a slow watcher gets fewer and newer values. No change is missed
// because of three rules:
//
//	SUBSCRIBE  a key is watched before it is read: Add marks it as changed
//	CLEAR      Take clears the mark before the value is read, so a change meanwhile marks the key again
//	ALL        a change of what all keys rest on, such as the owner, marks all keys
//
// What belongs here: keys, watchers and the limits on both. What does not: the values, which the owner of the
// keys reads under its lock.
package watch
