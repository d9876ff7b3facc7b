// Package ids is the verbs of seqctl for global IDs and named segments: snowflake,
// segment, number and namespace.
//
// It guarantees what package ctl does, with the same flags and formats. Wrongly called
// (exit code 2) is what no cluster and no layout could make sense of: a count of 0, an
// ID of a wrong alphabet, a text that is no layout. What a layout or a cluster refuses
// fails (exit code 1) under the name of the error that the cluster would give. JSON has
// a string beside each ID, since JavaScript loses digits above 2^53.
//
// decode, compose and layouts need no cluster; decode and compose ask one only when
// --namespace or --addr is given. No verb sends a change twice; taking IDs or numbers
// again can skip some and never repeats one.
package ids
