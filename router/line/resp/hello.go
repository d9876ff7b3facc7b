package resp

import (
	"fmt"
	"github.com/seqsvr/seqsvr/router/line"
	"os"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seqsvr/seqsvr/internal/base/version"
)

// This file has what clients say before they come to the point.

// hello switches between RESP2 and RESP3, and takes a token as AUTH does.
func hello(s *session, args []string) line.Op {
	proto, name := "", s.name
	for i := 0; i < len(args); {
		switch word := strings.ToLower(args[i]); {
		case i == 0 && (word == "2" || word == "3"):
			proto, i = word, i+1
		case i == 0:
			return line.Op{Err: &codedError{"NOPROTO", "unsupported protocol version"}}
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
	id := s.conn.ID()
	return tells(256, func(w *writer) {
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
func clientCommand(s *session, args []string) line.Op {
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
		id := s.conn.ID()
		return says(func(w *writer) { w.integer(id) })
	}
	return failed(fmt.Errorf("unknown subcommand or wrong number of arguments for '%.64s'. Try CLIENT HELP.", args[0]))
}

// describe answers COMMAND: tools ask for help texts, and some clients for where keys stand.
func describe(_ *session, args []string) line.Op {
	sub, names := "", known
	if len(args) > 0 {
		sub = strings.ToLower(args[0])
	}
	if len(args) > 1 {
		names = args[1:]
	}
	switch {
	case sub == "count" && len(args) == 1:
		return says(func(w *writer) { w.integer(uint64(len(commands))) })
	case sub == "list" && len(args) == 1:
		return tells(16*len(names), func(w *writer) {
			w.array(len(names))
			for _, name := range names {
				w.bulk(name)
			}
		})
	case sub == "docs":
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return commands[strings.ToLower(name)].read == nil })
		return tells(256*len(names), func(w *writer) {
			w.fields(len(names))
			for _, name := range names {
				w.bulk(strings.ToLower(name))
				w.fields(2)
				w.bulk("summary")
				w.bulk(commands[strings.ToLower(name)].about)
				w.bulk("group")
				w.bulk("seqsvr")
			}
		})
	case sub == "", sub == "info":
		return tells(128*len(names), func(w *writer) {
			w.array(len(names))
			for _, name := range names {
				w.entry(strings.ToLower(name))
			}
		})
	}
	return failed(fmt.Errorf("unknown subcommand or wrong number of arguments for '%.64s'. Try COMMAND HELP.", args[0]))
}

// entry is what COMMAND says of one: name, number of words, flags, where its keys stand.
func (w *writer) entry(name string) {
	c := commands[name]
	if c.read == nil {
		if w.resp3 {
			w.null()
		} else {
			w.line('*', "-1")
		}
		return
	}
	w.array(6)
	w.bulk(name)
	if c.max == c.min {
		w.integer(uint64(c.min) + 1)
	} else {
		w.line(':', strconv.Itoa(-c.min-1))
	}
	flag := "fast"
	switch {
	case c.writes:
		flag = "write"
	case c.keys != 0:
		flag = "readonly"
	}
	w.array(1)
	w.status(flag)
	first, last := min(1, c.keys*c.keys), c.keys
	w.integer(uint64(first))
	w.line(':', strconv.Itoa(last))
	w.integer(uint64(first))
}

// info answers INFO. Clients use it to see that a server is ready, and redis-cli --stat shows it.
// Fields without a meaning here are left out, or 0 if redis-cli expects them.
func info(s *session, args []string) line.Op {
	var commands uint64
	for _, t := range s.d.tallies {
		for r := range t {
			commands += t[r].Load()
		}
	}
	now := s.conn.Stats()
	v := version.Get()
	var b strings.Builder
	section := func(name string, lines ...string) {
		wanted := len(args) == 0
		for _, a := range args {
			a = strings.ToLower(a)
			wanted = wanted || a == name || a == "all" || a == "everything" || a == "default"
		}
		if !wanted {
			return
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString("# " + strings.ToUpper(name[:1]) + name[1:] + "\r\n" + strings.Join(lines, "\r\n") + "\r\n")
	}
	up := int64(time.Since(now.Since).Seconds())
	section("server", "redis_version:7.0.0", "redis_mode:standalone", "server_name:seqsvr", "seqsvr_version:"+v.Version,
		fmt.Sprintf("process_id:%d", os.Getpid()), fmt.Sprintf("uptime_in_seconds:%d", up), fmt.Sprintf("uptime_in_days:%d", up/86400))
	section("clients", fmt.Sprintf("connected_clients:%d", now.Conns), fmt.Sprintf("maxclients:%d", now.MaxConns), "blocked_clients:0")
	section("memory", fmt.Sprintf("used_memory:%d", usedMemory()))
	section("persistence", "loading:0")
	section("stats", fmt.Sprintf("total_connections_received:%d", now.Opened), fmt.Sprintf("total_commands_processed:%d", commands),
		fmt.Sprintf("rejected_connections:%d", now.Refused))
	section("replication", "role:master", "connected_slaves:0")
	section("cluster", "cluster_enabled:0")
	return saysText(b.String())
}

// usedMemory is what the process has of the system, in bytes.
func usedMemory() uint64 {
	all := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(all)
	return all[0].Value.Uint64() - all[1].Value.Uint64()
}

// config answers CONFIG GET, which redis-benchmark asks for its headline: no setting of
// Redis is one of this server's, so each is empty.
func config(_ *session, args []string) line.Op {
	if strings.ToLower(args[0]) != "get" || len(args) < 2 {
		return failed(fmt.Errorf("unknown subcommand or wrong number of arguments for '%.64s'. Try CONFIG HELP.", args[0]))
	}
	return tells(128*len(args), func(w *writer) {
		w.fields(len(args) - 1)
		for _, name := range args[1:] {
			w.bulk(name)
			w.bulk("")
		}
	})
}
