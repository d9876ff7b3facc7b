package ctl

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/seqsvr/seqsvr/internal/base/ui"
	"github.com/seqsvr/seqsvr/internal/ops/survey"
	pb "github.com/seqsvr/seqsvr/proto/seqsvr/v1"
	"github.com/seqsvr/seqsvr/seq"
)

var update = flag.Bool("update", false, "write the golden files anew")

// screenLines is the height of a screen.
const screenLines = 24

// site is 3 stores, 3 AllocSvr and 2 routers with names as they are in the wild.
func site() *survey.Survey {
	mapping, err := seq.NewMapping(seq.Space{Name: seq.DefaultSpace, Sections: 4096})
	if err != nil {
		panic(err)
	}
	s := &survey.Survey{Cluster: &survey.Cluster{ID: "production-eu", Mapping: mapping, Table: &seq.RouteTable{Version: 1234}}, Replies: map[string]*pb.StatusReply{}, Errs: map[string]error{}}
	var members []*pb.MemberStatus
	var stores []*pb.StoreStatus
	for i := range 3 {
		name, addr := fmt.Sprintf("store-%d", i+1), fmt.Sprintf("store-%d.eu.example.net:7500", i+1)
		stores = append(stores, &pb.StoreStatus{Uuid: strings.Repeat(fmt.Sprint(i), 32), Name: name, Addr: addr, Reachable: true, State: "voting",
			BootCount: 12, Commits: 98_765_432, DiskFreeBytes: 123 << 30})
	}
	for i := range 2 {
		members = append(members, &pb.MemberStatus{Name: fmt.Sprintf("router-%d", i+1), Role: "router", State: "alive", Addr: fmt.Sprintf("router-%d.eu.example.net:7400", i+1)})
	}
	for i := range 3 {
		name := fmt.Sprintf("alloc-%d", i+1)
		s.Cluster.Table.Nodes = append(s.Cluster.Table.Nodes, seq.Node{Name: name, Addr: name + ".eu.example.net:7410", Session: seq.Session(i + 1)})
		s.Replies[name] = &pb.StatusReply{ClusterId: "production-eu", Era: 1, Node: name, RouteVersion: 1234, Sections: 4096, SectionsOwned: 1365, Ready: true,
			LeaseUs: 1_000_000, Arbiter: "alloc-1", Stores: stores, Members: members, Numbers: 123_456_789_012, Counters: 45_678_901, Takeovers: 1365}
	}
	return s
}

// each changes the replies of all AllocSvr.
func each(s *survey.Survey, change func(r *pb.StatusReply)) {
	for _, r := range s.Replies {
		change(r)
	}
}

func away(n int) func(*survey.Survey) {
	return func(s *survey.Survey) {
		for _, st := range s.Replies["alloc-1"].Stores[:n] { // shared by all replies
			st.Reachable, st.State, st.DiskFreeBytes, st.Commits, st.BootCount = false, "unreachable", 0, 0, 0
		}
	}
}

func notReady(reason string) func(*pb.StatusReply) {
	return func(r *pb.StatusReply) { r.Ready, r.Reason, r.SectionsOwned = false, reason, 0 }
}

// noon is when the screens are looked at.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

var screens = map[string]func(*survey.Survey){
	"healthy": func(*survey.Survey) {},
	"nodes take plaintext from other machines": func(s *survey.Survey) {
		members := s.Replies["alloc-1"].Members // shared by all replies
		members[0].Exposed = true
		for _, name := range []string{"alloc-1", "alloc-2"} { // each by its own word
			r := s.Replies[name]
			r.Members = append(slices.Clone(members), &pb.MemberStatus{Name: name, Role: "alloc", State: "alive", Exposed: true},
				&pb.MemberStatus{Name: "router-0", Role: "router", State: "left", Exposed: true})
		}
	},
	"a store is down": away(1),
	"the quorum is lost": func(s *survey.Survey) {
		away(2)(s)
		each(s, notReady("no quorum of stores: 1 of 3 answered within the lease, 2 needed"))
	},
	"an allocator drains": func(s *survey.Survey) {
		s.Cluster.Table.Nodes[1].Drained = true
		s.Replies["alloc-2"].SectionsOwned = 512
	},
	"an allocator is drained and gone": func(s *survey.Survey) {
		s.Cluster.Table.Nodes[1].Drained = true
		delete(s.Replies, "alloc-2")
	},
	"an allocator is gone": func(s *survey.Survey) {
		delete(s.Replies, "alloc-3")
		each(s, func(r *pb.StatusReply) { r.SectionsUnowned = 1365 })
	},
	"no allocator answers": func(s *survey.Survey) { clear(s.Replies) },
	"the table is frozen": func(s *survey.Survey) {
		each(s, func(r *pb.StatusReply) {
			r.Frozen = "3 of 8 nodes became suspect within a minute: router-1, router-2, alloc-3"
		})
	},
	"memory for uids is short": func(s *survey.Survey) {
		s.Replies["alloc-2"].UidMemoryBytes, s.Replies["alloc-2"].UidMemoryBudget = 900<<20, 1<<30
	},
	"memory for uids is used up": func(s *survey.Survey) {
		s.Replies["alloc-2"].UidMemoryBytes, s.Replies["alloc-2"].UidMemoryBudget = 1<<30, 1<<30
		s.Replies["alloc-3"].UidMemoryBytes, s.Replies["alloc-3"].UidMemoryBudget = 700<<20, 1<<30
	},
	"a disk is nearly full": func(s *survey.Survey) {
		st := s.Replies["alloc-1"].Stores[1]
		st.NearlyFull, st.DiskFreeBytes = true, 40<<20
	},
	"two disks are nearly full": func(s *survey.Survey) {
		for _, st := range s.Replies["alloc-1"].Stores[1:] {
			st.NearlyFull, st.DiskFreeBytes = true, 40<<20
		}
	},
	"sections come to their end": func(s *survey.Survey) {
		const end = uint64(seq.MaxSeq)
		each(s, func(r *pb.StatusReply) {
			r.Ending = []*pb.EndingSection{{Section: 3, Space: "user", Max: end, Spent: true}, {Section: 7, Space: "user", Max: end - 1<<30}}
			r.SectionsNearEnd, r.SectionsSpent = 2, 1
		})
	},
	"worker ids run short": func(s *survey.Survey) {
		r := &pb.SnowflakeWorkersReply{Namespace: "orders", Pool: 32}
		for i := range 30 {
			r.Workers = append(r.Workers, &pb.SnowflakeWorker{DatacenterId: 1, WorkerId: uint64(i), Free: i < 2})
		}
		s.AskIDs(context.Background(), namespaces{workers: r}, noon)
	},
	"a layout ends soon": func(s *survey.Survey) {
		ns := &pb.SnowflakeNamespace{Name: "orders", Version: 1, Layout: &pb.SnowflakeLayout{ExhaustedUnixMs: noon.AddDate(0, 2, 0).UnixMilli()}}
		s.AskIDs(context.Background(), namespaces{list: []*pb.SnowflakeNamespace{ns}}, noon)
	},
	"another region makes the same IDs": func(s *survey.Survey) {
		s.AskIDs(context.Background(), namespaces{shared: []string{`clusters shop-eu and shop-cn can make the same IDs: namespace "default", datacenters 1 "eu" and 1 "cn"`, "a second"}}, noon)
	},
	"nodes are in zones":      inZones("fra-1", "fra-2", "fra-3"),
	"a zone has most of them": inZones("fra-1", "fra-1", "fra-2", "fra-3-with-a-long-name"),
	"tickets expire": func(s *survey.Survey) {
		read(s, &pb.Reading{Tickets: 300, MostTickets: 1 << 20, LatelyMs: 300_000, Opened: 900_000, Expired: 60_000, Spaces: []*pb.SpaceReading{
			{Space: "a-space-with-a-long-name"}, {Space: "inbox", Tickets: 300, OldestMs: 9_700, Expired: 60_000, Keys: 1_200_000}}})
	},
	"tickets run short": func(s *survey.Survey) {
		read(s, &pb.Reading{Tickets: 900_000, MostTickets: 1 << 20, LatelyMs: 300_000, Opened: 100_000_000, Spaces: []*pb.SpaceReading{{Space: "inbox", Tickets: 900_000, OldestMs: 61_000}}})
	},
	"no more tickets": func(s *survey.Survey) {
		read(s, &pb.Reading{Tickets: 1 << 20, MostTickets: 1 << 20, LatelyMs: 300_000, Opened: 100_000_000, Spaces: []*pb.SpaceReading{{Space: "inbox", Tickets: 1 << 20, OldestMs: 61_000}}})
	},
	"much at once": func(s *survey.Survey) {
		away(1)(s)
		read(s, &pb.Reading{Tickets: 1 << 20, MostTickets: 1 << 20, LatelyMs: 300_000, Spaces: []*pb.SpaceReading{{Space: "inbox", Tickets: 1 << 20}}})
		s.Cluster.ID = strings.Repeat("long-cluster-name-", 3)
		st := s.Replies["alloc-1"].Stores[1]
		st.NearlyFull, st.State = true, "voting"
		s.Replies["alloc-1"].Stores[2].State = "distrusted: session 00000000000000aa has seen a later promise than this disk has"
		delete(s.Replies, "alloc-3")
		s.Cluster.Table.Nodes[1].Drained = true
		s.Replies["alloc-1"].Members[0].State, s.Replies["alloc-1"].Members[1].State = "dead", "dead"
		each(s, notReady("no quorum of stores: 1 of 3 answered within the lease, 2 needed"))
		each(s, func(r *pb.StatusReply) { r.Frozen = "5 of 8 nodes became suspect within a minute" })
	},
}

// read says what alloc-2 keeps for readers, as alloc-1 has some watched keys of inbox.
func read(s *survey.Survey, of *pb.Reading) {
	s.Replies["alloc-1"].Reading = &pb.Reading{MostTickets: 1 << 20, LatelyMs: 300_000, Opened: 500, Expired: 9, Spaces: []*pb.SpaceReading{{Space: "inbox", Keys: 34}}}
	s.Replies["alloc-2"].Reading = of
}

// inZones puts nodes into the zones in turn; two of three stores are in the first if it comes twice.
func inZones(zones ...string) func(*survey.Survey) {
	return func(s *survey.Survey) {
		for i := range s.Cluster.Table.Nodes {
			s.Cluster.Table.Nodes[i].Zone, s.Cluster.Table.Nodes[i].Weight = zones[i%len(zones)], 100
		}
		for i, st := range s.Replies["alloc-1"].Stores {
			st.Zone = zones[i%len(zones)]
		}
		for i, m := range s.Replies["alloc-1"].Members {
			m.Zone = zones[len(zones)-1-i%len(zones)]
		}
		each(s, func(r *pb.StatusReply) {
			if r.W = 2; zones[0] == zones[1] {
				s.Cluster.Table.Nodes[2].Zone = zones[3]
				s.Replies["alloc-1"].Stores[2].Zone, r.SectionsOneZone = zones[3], 1365
				s.Cluster.Table.Nodes[1].Zone = zones[2]
			}
		})
	}
}

func TestStatusFitsOneScreenInEveryState(t *testing.T) {
	for name, spoil := range screens {
		t.Run(name, func(t *testing.T) {
			s := site()
			spoil(s)
			var out bytes.Buffer
			r := s.Judge()
			if err := writeStatus(&out, r, screenColumns); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
			if len(lines) > screenLines {
				t.Errorf("%d lines, expected at most %d", len(lines), screenLines)
			}
			for _, l := range lines {
				if n := utf8.RuneCountInString(l); n > screenColumns {
					t.Errorf("%d columns, expected at most %d: %s", n, screenColumns, l)
				}
			}
			if !strings.HasPrefix(lines[0], strings.ToUpper(string(r.Health))) || !strings.HasSuffix(lines[0], r.First) {
				t.Errorf("the first line is %q, expected %s and %q", lines[0], r.Health, r.First)
			}
			file := filepath.Join("testdata", "status", strings.ReplaceAll(name, " ", "-")+".txt")
			if *update {
				if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestStatusIsWholeWhereNoTerminalIs(t *testing.T) {
	s := site()
	long := strings.Repeat("the nodes that went have a power supply in common ", 5)
	each(s, func(r *pb.StatusReply) { r.Frozen = long })
	var out bytes.Buffer
	if err := printStatus(&out, ui.FormatTable, s.Judge()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), strings.TrimSpace(long)) || !strings.Contains(out.String(), "| first: ") {
		t.Errorf("a line is cut:\n%s", out.String())
	}
}
