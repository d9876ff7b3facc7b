package config

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// FileFlag is the flag that names the YAML file; Load adds it where it is
// missing.
const FileFlag = "config"

// sourceKey names a flag's annotation that keeps the source of its value. So Print needs nothing but the
// flag set.
const sourceKey = "seq.source"

// Load parses args (without the program's name) into fs, then fills every flag
// that args did not set from env, then from the YAML file. env has the contract
// of os.LookupEnv and may be nil; a variable that is set but empty counts as
// set. Afterwards Changed is true for every flag that any source set, and
// fs.Args holds what was left over.
//
// Errors: pflag.ErrHelp, unwrapped, when args ask for help; otherwise one or
// more *Error. The flags are then in an undefined state and must not be used.
// A value that a stronger source overrides is not looked at.
func Load(fs *pflag.FlagSet, args []string, env func(string) (string, bool)) error {
	if fs.Lookup(FileFlag) == nil {
		fs.String(FileFlag, "", "YAML `file` with any of these flags as keys, without their dashes")
	}
	Strict(fs)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return flagError(err)
	}
	fs.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			setSource(flag, "flag --"+flag.Name)
		} else {
			setSource(flag, "default")
		}
	})
	var errs []error
	if env != nil {
		errs = append(errs, loadEnv(fs, env)...)
	}
	if file := fs.Lookup(FileFlag); file.Changed && len(errs) == 0 {
		errs = append(errs, loadFile(fs, file.Value.String(), source(file))...)
	}
	return errors.Join(errs...)
}

// EnvName is the environment variable of a flag: SEQ_MAX_BATCH for max-batch.
func EnvName(flag string) string {
	return "SEQ_" + strings.ToUpper(strings.NewReplacer("-", "_", ".", "_").Replace(flag))
}

func setSource(flag *pflag.Flag, text string) {
	if flag.Annotations == nil {
		flag.Annotations = make(map[string][]string)
	}
	flag.Annotations[sourceKey] = []string{text}
}

func source(flag *pflag.Flag) string {
	switch text := flag.Annotations[sourceKey]; {
	case len(text) > 0:
		return text[0]
	case flag.Changed:
		return "flag --" + flag.Name
	default:
		return "default"
	}
}

// commandLineOnly are the flags that ask for something instead of setting
// something.
func commandLineOnly(name string) bool { return name == "help" || name == "version" }

func loadEnv(fs *pflag.FlagSet, env func(string) (string, bool)) []error {
	var errs []error
	fs.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || commandLineOnly(flag.Name) {
			return
		}
		name := EnvName(flag.Name)
		value, ok := env(name)
		if !ok {
			return
		}
		if err := fs.Set(flag.Name, value); err != nil {
			errs = append(errs, valueError("environment "+name, flag, value))
			return
		}
		setSource(flag, "environment "+name)
	})
	return errs
}
