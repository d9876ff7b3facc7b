package resp

import (
	"errors"

	"github.com/seqsvr/seqsvr/router/line"
)

// wrongPass is what Redis says of a password that does not hold, which clients know.
var wrongPass = &codedError{"WRONGPASS", "invalid username-password pair or user is disabled."}

// authenticate stores the token of AUTH or HELLO for all later commands. name is the principal's
// name. Clients that know no name send "" or "default".
func (s *session) authenticate(name, token string) error {
	if name == "default" {
		name = ""
	}
	switch err := s.conn.Authenticate(name, token); {
	case errors.Is(err, line.ErrNoGuard):
		return errPassword
	case err != nil:
		return wrongPass
	}
	return nil
}

// authCommand is AUTH token and AUTH name token.
func authCommand(s *session, args []string) line.Op {
	name := ""
	if len(args) == 2 {
		name = args[0]
	}
	if err := s.authenticate(name, args[len(args)-1]); err != nil {
		return failed(err)
	}
	return ok()
}
