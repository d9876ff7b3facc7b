// Package ids has the verbs of seqctl for global IDs and named segments: snowflake, segment, number and
// namespace.
//
// It has the guarantees, flags and formats of package ctl. A call is wrong (exit code 2) if no cluster and
// no layout could make sense of it. Examples are a count of 0, an ID of a wrong alphabet, and a text that
// is no layout. If a layout or a cluster refuses the call, it fails (exit code 1) under the name of the
// cluster's error. JSON has a string beside each ID, because JavaScript loses digits above 2^53.
//
// The verbs decode, compose and layouts need no cluster. decode and compose ask a cluster only if
// --namespace or --addr is given. No verb sends a change twice. Taking IDs or numbers again may skip some
// and never repeats one.
package ids
