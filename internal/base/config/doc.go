// Package config fills the flags of a daemon from four sources. The first one that names a value wins:
//
//	--max-batch 100        the command line
//	SEQ_MAX_BATCH=100      the environment
//	max-batch: 100         the YAML file given by --config or SEQ_CONFIG
//	the flag's default
//
// A flag set is the whole schema: one name, one type, one default and one line of help for all sources.
// Nothing is guessed. The start fails for an unknown key, a key that comes twice, a value of the wrong
// form, or an empty value where a number is due. The error names the place, the fault and the expected
// value.
//
// The file is flat: one mapping from flag names to scalars or lists of scalars. Nothing may be nested, and
// it cannot name another file.
//
// Reading and showing settings belongs here. Their meaning does not: each daemon's own Config validates
// them.
package config
