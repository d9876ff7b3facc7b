package resp

import (
	"fmt"
	"strings"

	"github.com/seqsvr/seqsvr/internal/version"
)

// This file has what clients say before they come to the point.

// hello switches between RESP2 and RESP3, and takes a token as AUTH does.
func hello(s *session, args []string) op {
	proto, name := "", s.name
	for i := 0; i < len(args); {
		switch word := strings.ToLower(args[i]); {
		case i == 0 && (word == "2" || word == "3"):
			proto, i = word, i+1
		case i == 0:
			return op{err: &codedError{"NOPROTO", "unsupported protocol version"}}
		case word == "auth" && i+2 < len(args):
			if err := s.authenticate(args[i+1], args[i+2]); err != nil {
				return failed(err)
			}
			i += 3
		case word == "setname" && i+1 < len(args):
			name, i = args[i+1], i+2
		default:
			return failed(fmt.Errorf("Syntax error in HELLO option '%.64s'", args[i]))
		}
	}
	s.name = name
	id := s.id
	return says(func(w *writer) {
		if proto != "" {
			w.resp3 = proto == "3"
		}
		w.fields(7)
		w.bulk("server")
		w.bulk("redis") // some clients accept no other
		w.bulk("version")
		w.bulk("7.0.0")
		w.bulk("proto")
		if w.resp3 {
			w.integer(3)
		} else {
			w.integer(2)
		}
		w.bulk("id")
		w.integer(id)
		w.bulk("mode")
		w.bulk("standalone")
		w.bulk("role")
		w.bulk("master")
		w.bulk("modules")
		w.array(1)
		w.fields(2)
		w.bulk("name")
		w.bulk("seqsvr")
		w.bulk("ver")
		w.bulk(version.Get().Version)
	})
}

var errPassword = fmt.Errorf("AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")

// clientCommand takes what clients tell of themselves.
func clientCommand(s *session, args []string) op {
	sub := strings.ToLower(args[0])
	switch n := len(args) - 1; {
	case sub == "setname" && n == 1:
		s.name = args[1]
		return ok()
	case sub == "getname" && n == 0:
		name := s.name
		return says(func(w *writer) {
			if name == "" {
				w.null()
				return
			}
			w.bulk(name)
		})
	case sub == "setinfo" && n == 2, sub == "no-evict" && n == 1, sub == "no-touch" && n == 1:
		return ok()
	case sub == "id" && n == 0:
		id := s.id
		return says(func(w *writer) { w.integer(id) })
	}
	return failed(fmt.Errorf("unknown subcommand or wrong number of arguments for '%.64s'. Try CLIENT HELP.", args[0]))
}

// commandCount is how many there are; the table itself cannot be asked from within.
const commandCount = 13

// describe answers COMMAND, which tools ask for help texts; there are none.
func describe(_ *session, args []string) op {
	sub := ""
	if len(args) > 0 {
		sub = strings.ToLower(args[0])
	}
	switch sub {
	case "count":
		return says(func(w *writer) { w.integer(commandCount) })
	case "docs":
		return says(func(w *writer) { w.fields(0) })
	case "", "info", "list":
		return says(func(w *writer) { w.array(0) })
	}
	return failed(fmt.Errorf("unknown subcommand or wrong number of arguments for '%.64s'. Try COMMAND HELP.", args[0]))
}

// config answers CONFIG GET, which redis-benchmark asks for its headline: no setting of
// Redis is one of this server's, so each is empty.
func config(_ *session, args []string) op {
	if strings.ToLower(args[0]) != "get" || len(args) < 2 {
		return failed(fmt.Errorf("unknown subcommand or wrong number of arguments for '%.64s'. Try CONFIG HELP.", args[0]))
	}
	return says(func(w *writer) {
		w.fields(len(args) - 1)
		for _, name := range args[1:] {
			w.bulk(name)
			w.bulk("")
		}
	})
}
