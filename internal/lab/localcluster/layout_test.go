package localcluster

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func open(t *testing.T, cfg Config) *Layout {
	t.Helper()
	l, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func noInit(Node) error { return nil }

func TestALayoutGivesEveryNodeItsOwnAddresses(t *testing.T) {
	cfg := DefaultConfig(t.TempDir())
	cfg.Stores, cfg.Allocs, cfg.Routers = MaxStores, MaxAllocs, MaxRouters
	seen := map[string]string{}
	for _, n := range open(t, cfg).Nodes {
		for _, addr := range []string{n.Addr, n.HTTP, n.Gossip} {
			if other := seen[addr]; addr != "" && other != "" {
				t.Errorf("%s and %s share %s", n.Name, other, addr)
			}
			seen[addr] = n.Name
		}
	}
}

func TestAddressesStayWhenTheNumberOfNodesChanges(t *testing.T) {
	cfg := DefaultConfig(t.TempDir())
	l := open(t, cfg)
	before := l.Role(RoleRouter)[0]
	l.Close()
	cfg.Allocs, cfg.Routers = 5, 2
	l = open(t, cfg)
	if diff := cmp.Diff(before, l.Role(RoleRouter)[0]); diff != "" {
		t.Errorf("the router moved (-before +after)\n%s", diff)
	}
	if got := len(l.Addrs(RoleAlloc)); got != 5 {
		t.Errorf("%d allocs, want 5", got)
	}
}

func TestTheFirstRouterListensWhereItWasAsked(t *testing.T) {
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := lis.Addr().String()
	cfg := DefaultConfig(t.TempDir())
	cfg.Listen, cfg.HTTP = addr, "127.0.0.1:0"
	if _, err := Open(cfg); !errors.Is(err, ErrAddrInUse) {
		t.Errorf("a taken address: got %v, want ErrAddrInUse", err)
	}
	if err := lis.Close(); err != nil {
		t.Fatal(err)
	}
	router := open(t, cfg).Role(RoleRouter)[0]
	if router.Addr != addr || router.HTTP == "" || router.HTTP == "127.0.0.1:0" {
		t.Errorf("got %+v, want gRPC on %s and a picked HTTP port", router, addr)
	}
}

func TestTwoClustersNeverShareADirectoryOrPorts(t *testing.T) {
	cfg := DefaultConfig(t.TempDir())
	first := open(t, cfg)
	if _, err := Open(cfg); !errors.Is(err, ErrInUse) {
		t.Errorf("the same directory: got %v, want ErrInUse", err)
	}
	second := open(t, DefaultConfig(t.TempDir()))
	if first.state.Block == second.state.Block {
		t.Errorf("both have the ports of block %d", first.state.Block)
	}
}

func TestADirectoryWhosePortsWereTakenGetsOthers(t *testing.T) {
	cfg := DefaultConfig(t.TempDir())
	l := open(t, cfg)
	block := l.state.Block
	l.Close()
	taken, err := guard(block)
	if err != nil {
		t.Skipf("somebody took block %d meanwhile: %v", block, err)
	}
	defer taken.Close()
	if got := open(t, cfg).state.Block; got == block {
		t.Errorf("block %d is taken and was given again", got)
	}
}

func TestStoresAreInitialisedOnceAndAllTogether(t *testing.T) {
	cfg := DefaultConfig(t.TempDir())
	l := open(t, cfg)
	broken := errors.New("disk is away")
	var made []string
	err := l.Initialise(func(n Node) error {
		if n.Name == "store-2" {
			return broken
		}
		made = append(made, n.Name)
		return os.MkdirAll(n.Dir, 0o755)
	})
	if !errors.Is(err, broken) || readState(t, cfg.Dir).Initialised {
		t.Fatalf("got %v, want %v and a state that is not initialised", err, broken)
	}
	made = nil
	again := func(n Node) error {
		if _, err := os.Stat(n.Dir); err == nil {
			t.Errorf("%s still holds what the first attempt left", n.Name)
		}
		made = append(made, n.Name)
		return os.MkdirAll(n.Dir, 0o755)
	}
	for range 2 {
		if err := l.Initialise(again); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"store-1", "store-2", "store-3"}, made); diff != "" {
		t.Errorf("initialised (-want +got)\n%s", diff)
	}
}

func TestAnUnsoundDirectoryOrConfigIsRefused(t *testing.T) {
	initialised := func(t *testing.T, cfg Config) {
		l := open(t, cfg)
		if err := l.Initialise(noInit); err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	write := func(name, text string) func(*testing.T, Config) {
		return func(t *testing.T, cfg Config) {
			if err := os.WriteFile(filepath.Join(cfg.Dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	tests := []struct {
		name    string
		prepare func(*testing.T, Config)
		change  func(*Config)
		want    error
	}{
		{"no directory", nil, func(c *Config) { c.Dir = "" }, ErrConfig},
		{"no stores", nil, func(c *Config) { c.Stores = 0 }, ErrConfig},
		{"too many stores", nil, func(c *Config) { c.Stores = MaxStores + 1 }, ErrConfig},
		{"no allocs", nil, func(c *Config) { c.Allocs = 0 }, ErrConfig},
		{"no routers", nil, func(c *Config) { c.Routers = -1 }, ErrConfig},
		{"bad cluster id", nil, func(c *Config) { c.ClusterID = "a b" }, ErrConfig},
		{"another number of stores", initialised, func(c *Config) { c.Stores = 5 }, ErrConfig},
		{"another cluster", initialised, func(c *Config) { c.ClusterID = "other" }, ErrConfig},
		{"a state file that is no JSON", write(stateFile, "{"), nil, ErrState},
		{"a state file without a cluster", write(stateFile, "{}"), nil, ErrState},
		{"stores without a state file", write("store-1", ""), nil, ErrState},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			cfg := DefaultConfig(t.TempDir())
			if test.prepare != nil {
				test.prepare(t, cfg)
			}
			if test.change != nil {
				test.change(&cfg)
			}
			if l, err := Open(cfg); !errors.Is(err, test.want) {
				t.Errorf("got %v, want %v", err, test.want)
				if err == nil {
					l.Close()
				}
			}
		})
	}
}

func TestAMissingBinaryIsNamed(t *testing.T) {
	cfg := DefaultConfig(t.TempDir())
	cfg.Bin = t.TempDir()
	if _, err := Start(cfg); !errors.Is(err, ErrConfig) {
		t.Errorf("got %v, want ErrConfig", err)
	}
	cfg.Bin = bin(t)
	c, err := Start(cfg)
	if err != nil {
		t.Fatalf("after the failed start: %v", err)
	}
	c.Close()
}
