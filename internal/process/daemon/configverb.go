package daemon

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/seqsvr/seqsvr/internal/base/config"
)

const configHelp = `Usage: %[1]s config print|validate [flags]

  print     writes every setting with its effective value and where it came from
            (flag, environment, file and line, or default), as a file for --config
  validate  says ok, or names everything that is wrong; exit code 2 then

Both take the flags of the daemon and start nothing.
`

// ConfigVerb answers `config print` and `config validate`; args come after "config".
// load reads and checks the settings from all their sources, as a start would.
func ConfigVerb(name string, args []string, stdout io.Writer, load func(args []string) (*Common, error)) error {
	verbs := []string{"print", "validate"}
	if len(args) == 0 || !slices.Contains(verbs, args[0]) {
		if len(args) > 0 && slices.Contains([]string{"--help", "-h", "help"}, args[0]) {
			_, err := fmt.Fprintf(stdout, configHelp, name)
			return err
		}
		return Usage(fmt.Errorf("config: arguments %q: expected print or validate", args))
	}
	c, err := load(args[1:])
	if err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		return Usage(fmt.Errorf("config %s: %w", args[0], err))
	}
	if args[0] == "validate" {
		_, err = fmt.Fprintln(stdout, "ok")
		return err
	}
	text, err := config.Print(c.fs)
	if err == nil {
		_, err = stdout.Write(text)
	}
	return err
}
