// Package config fills the flags of a daemon from four sources. The first one
// that names a value wins:
//
//	--max-batch 100        the command line
//	SEQ_MAX_BATCH=100      the environment
//	max-batch: 100         the YAML file given by --config or SEQ_CONFIG
//	the flag's default
//
// A flag set is thus the whole schema: one name, one type, one default and one
// line of help for all sources. Nothing is guessed. An unknown key, a key that
// comes twice, a value of the wrong form or an empty value where a number is
// due fails the start with an error that says where it stands, what is wrong
// with it and what was expected there.
//
// The file is flat: one mapping from flag names to scalars or lists of scalars.
// Nothing may be nested, and it cannot name another file.
//
// Reading and showing settings belongs here. What the settings mean, and which
// of them agree with each other, is for each daemon's own Config to validate.
package config
