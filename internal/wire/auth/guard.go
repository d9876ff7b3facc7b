package auth

import (
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seqsvr/seqsvr/seq"
)

// Mode is what is done about calls that are not allowed.
type Mode string

// The modes.
const (
	Off     Mode = "off"     // nothing is looked at
	Accept  Mode = "accept"  // they are served, logged and counted: on the way to Require
	Require Mode = "require" // they are refused
)

// ParseMode reads a mode.
func ParseMode(text string) (Mode, error) {
	if m := Mode(text); m == Off || m == Accept || m == Require {
		return m, nil
	}
	return Off, fmt.Errorf("auth mode %q: expected off, accept or require", text)
}

// Config is what a Guard goes by.
type Config struct {
	Mode    Mode
	Cluster string // that certificates must be of
	// PolicyFile is read again at Reload and when it has changed. Empty: no tokens, callers
	// have no grants, and certificates of readers and operators hold by themselves.
	PolicyFile string
	Logger     *slog.Logger // if nil, nothing is logged
}

// Guard decides about calls. A nil Guard lets everything pass. Safe for concurrent use.
type Guard struct {
	cfg    Config
	log    *slog.Logger
	begun  time.Time
	policy atomic.Pointer[Policy] // the last valid one; nil without a file
	refuse refusals

	looked atomic.Int64 // when the file was last looked at, in nanoseconds since begun
	told   atomic.Int64 // when a refusal was last logged, likewise
	untold atomic.Uint64

	mu    sync.Mutex // guards all below
	stamp stamp
	fault string // the last complaint about the file; empty if the file is in use
}

// stamp tells one state of a file from another.
type stamp struct {
	changed time.Time
	size    int64
	mode    os.FileMode
}

// lookEvery bounds how long a changed policy file goes unnoticed without SIGHUP.
const lookEvery = time.Second

// New reads the policy. Nil for Off. ErrPolicy, ErrOpenFile, ErrBadName for a cluster
// that no certificate can name.
func New(cfg Config) (*Guard, error) {
	if cfg.Mode == Off || cfg.Mode == "" {
		return nil, nil
	}
	if err := (Identity{cfg.Cluster, Alloc, "any"}).Check(); err != nil {
		return nil, err
	}
	g := &Guard{cfg: cfg, log: cfg.Logger, begun: time.Now()}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	g.told.Store(-int64(time.Hour))
	if cfg.PolicyFile == "" {
		return g, nil
	}
	g.stamp = g.stat()
	p, err := ReadPolicy(cfg.PolicyFile)
	if err != nil {
		return nil, err
	}
	g.policy.Store(p)
	return g, nil
}

// Mode is Off for a nil Guard.
func (g *Guard) Mode() Mode {
	if g == nil {
		return Off
	}
	return g.cfg.Mode
}

// Cluster returns the cluster id of Config, or "" for a nil Guard.
func (g *Guard) Cluster() string {
	if g == nil {
		return ""
	}
	return g.cfg.Cluster
}

func (g *Guard) stat() stamp {
	info, err := os.Stat(g.cfg.PolicyFile)
	if err != nil {
		return stamp{}
	}
	return stamp{info.ModTime(), info.Size(), info.Mode()}
}

// Reload reads the policy again. If it is not sound the former one stays, and the log
// says why.
func (g *Guard) Reload() {
	if g == nil || g.cfg.PolicyFile == "" {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reload(g.stat())
}

func (g *Guard) reload(now stamp) {
	p, err := ReadPolicy(g.cfg.PolicyFile)
	if err != nil {
		if g.fault != err.Error() { // not once more each second
			g.log.Error("the policy cannot be used, the former one stays in use", "error", err)
		}
		g.fault = err.Error()
		return
	}
	p.keep(g.policy.Load())
	g.policy.Store(p)
	g.stamp, g.fault = now, ""
	g.log.Info("the policy was read", "file", g.cfg.PolicyFile, "principals", len(p.Principals))
}

// current is the policy in use, which is looked at once a second.
func (g *Guard) current() *Policy {
	if g.cfg.PolicyFile == "" {
		return nil
	}
	now, last := int64(time.Since(g.begun)), g.looked.Load()
	if now-last >= int64(lookEvery) && g.looked.CompareAndSwap(last, now) {
		g.mu.Lock()
		if s := g.stat(); s != g.stamp {
			g.reload(s)
		}
		g.mu.Unlock()
	}
	return g.policy.Load()
}

// takes tells whether certificates of a cluster count by a policy, which may be nil.
func (g *Guard) takes(p *Policy, cluster string) bool {
	return cluster == g.cfg.Cluster || p != nil && slices.Contains(p.Clusters, cluster)
}

// Takes tells whether certificates of a cluster count: its own, and those that the policy in
// use names as Sets beside it. False for a nil Guard.
func (g *Guard) Takes(cluster string) bool { return g != nil && g.takes(g.current(), cluster) }

// Credentials hold what a caller showed of itself. The Guard looks it up again at each call.
type Credentials struct {
	Evidence Evidence
	Token    string // empty if there is none
	Err      error  // of the header with the token
}

// holder is the principal of a call.
type holder struct {
	id     string // for logs; empty without a principal
	role   Role   // empty without a principal
	grants []*Grant
	away   bool // a node of another Set
}

// hold returns the principal that w stands for now. It fails with seq.ErrUnauthenticated.
func (g *Guard) hold(w Credentials) (holder, error) {
	p := g.current()
	switch {
	case w.Err != nil:
		return holder{}, w.Err
	case w.Token != "":
		token, err := ParseToken(w.Token)
		if err != nil {
			return holder{}, fmt.Errorf("%w: %w", seq.ErrUnauthenticated, err)
		}
		if p != nil {
			if one := p.byToken[token.Hash()]; one != nil {
				return holder{id: one.ID(), role: one.Role, grants: one.Grants}, nil
			}
		}
		return holder{}, fmt.Errorf("%w: the token is unknown or was revoked", seq.ErrUnauthenticated)
	case w.Evidence.Err != nil:
		return holder{}, w.Evidence.Err
	case w.Evidence.Identity.Role == "":
		return holder{}, fmt.Errorf("%w: neither a certificate with a role nor a token was shown", seq.ErrUnauthenticated)
	case !g.takes(p, w.Evidence.Identity.Cluster):
		return holder{}, w.Evidence.Identity.foreign(g.cfg.Cluster)
	case time.Now().After(w.Evidence.Until):
		return holder{}, fmt.Errorf("%w at %s: %s", ErrExpired, w.Evidence.Until.UTC().Format(time.RFC3339), w.Evidence.Identity.URI())
	}
	id := w.Evidence.Identity
	h := holder{id: string(id.Role) + "/" + id.Name, role: id.Role}
	if !id.Role.ofPolicy() && id.Cluster != g.cfg.Cluster {
		h.id, h.away = h.id+" of "+id.Cluster, true // a node here may have the same name
	}
	if !id.Role.ofPolicy() || p == nil {
		return h, nil
	}
	one := p.byName[h.id]
	if one == nil {
		return holder{}, fmt.Errorf("%w: %s is not in the policy", seq.ErrUnauthenticated, h.id)
	}
	h.grants = one.Grants
	return h, nil
}

// Check is what stands against a call of a method with a message, of which the caller's
// quota is charged: seq.ErrUnauthenticated, seq.ErrForbidden or seq.ErrQuota. Only in
// Require; in Accept it is logged and counted, and nil. message is nil before there is one.
func (g *Guard) Check(w Credentials, method string, message any) error {
	if g == nil {
		return nil
	}
	var demands []Demand
	access := Methods[method]
	if access.Demands != nil && message != nil {
		demands = access.Demands(message)
	}
	h, err := g.decide(w, method, demands)
	if err == nil && access.Node != nil && message != nil {
		err = h.maySpeakFor(access.Node(message))
	}
	return g.verdict(h, method, err)
}

// Ask is Check for those who have no message, and say themselves what they ask for.
func (g *Guard) Ask(w Credentials, method string, demands ...Demand) error {
	if g == nil {
		return nil
	}
	h, err := g.decide(w, method, demands)
	return g.verdict(h, method, err)
}

// Identify is the principal that shows w, for what is decided before there is a call. A refusal counts
// where it holds, in Require.
func (g *Guard) Identify(w Credentials) (by string, err error) {
	h, err := g.hold(w)
	if err != nil && g.cfg.Mode == Require {
		_ = g.verdict(h, "", err)
	}
	return h.id, err
}

// Holder is the principal and role that a call counts for; "" for none.
func (g *Guard) Holder(w Credentials) (principal string, role Role) {
	if g == nil {
		return "", ""
	}
	h, err := g.hold(w)
	if err != nil {
		return "", ""
	}
	return h.id, h.role
}

// Try tells what a call would meet, and charges nothing.
func (g *Guard) Try(w Credentials, method string, demands ...Demand) (by string, err error) {
	h, err := g.hold(w)
	if err != nil {
		return "", err
	}
	if method != "" {
		if err := h.mayCall(method); err != nil {
			return h.id, err
		}
	}
	for _, d := range demands {
		if _, err := h.may(d); err != nil {
			return h.id, err
		}
	}
	return h.id, nil
}

func (g *Guard) decide(w Credentials, method string, demands []Demand) (holder, error) {
	if Methods[method].Public {
		return holder{}, nil
	}
	h, err := g.hold(w)
	if err != nil {
		return h, err
	}
	if err := h.mayCall(method); err != nil {
		return h, err
	}
	grants := make([]*Grant, len(demands))
	for i, d := range demands {
		if grants[i], err = h.may(d); err != nil {
			return h, err
		}
	}
	if g.cfg.Mode == Require {
		bound(demands, grants)
	}
	return h, g.charge(h, demands, grants)
}

// bound has raises say how far their grants let them go.
func bound(demands []Demand, grants []*Grant) {
	for i, d := range demands {
		if grants[i] == nil || d.Verb != Raise || d.Within == nil {
			continue
		}
		if far := grants[i].MaxRaise; *d.Within == 0 || *d.Within > far {
			*d.Within = far
		}
	}
}

// charge takes all or, at the first grant that has none left, what stands before it: a
// call that is refused costs its caller something, and never the others.
func (g *Guard) charge(h holder, demands []Demand, grants []*Grant) error {
	now := time.Since(g.begun)
	for i, grant := range grants {
		if grant == nil {
			continue
		}
		if wait := grant.quota.charge(grant.Rate, demands[i].Keys, now); wait > 0 {
			wait = wait.Truncate(time.Millisecond) + time.Millisecond
			return &QuotaError{By: h.id, Of: string(grant.Kind) + " " + grant.Pattern, Rate: grant.Rate, RetryAfter: wait}
		}
	}
	return nil
}

// mayCall refuses what the table does not list for the role.
func (h holder) mayCall(method string) error {
	access, listed := Methods[method]
	switch {
	case !listed:
		return fmt.Errorf("%w: %s is a method that nobody may call", seq.ErrForbidden, method)
	case !access.May(h.role):
		hint := ""
		if h.role == Router {
			hint = ", asked directly: a router passes on what callers may"
		}
		return fmt.Errorf("%w: %s calls %s: expected role %v%s", seq.ErrForbidden, h.id, method, access.Roles, hint)
	case h.away && h.role != Router && !access.Abroad && !access.Public:
		return fmt.Errorf("%w: %s calls %s: expected a node of this Set", seq.ErrForbidden, h.id, method)
	}
	return nil
}

// may is the grant that covers a demand; nil without an error for a role that needs none.
func (h holder) may(d Demand) (*Grant, error) {
	refused := func(why string) (*Grant, error) {
		return nil, fmt.Errorf("%w: %s: %s of %s %.200q%s", seq.ErrForbidden, h.id, d.Verb, d.Kind, d.Name, why)
	}
	switch {
	case h.role == Operator:
		return nil, nil
	case d.Force:
		return refused(" with force: expected an operator, at an AllocSvr")
	case h.role == Router, h.role == Reader && d.Verb == Read:
		return nil, nil
	case h.role != Caller:
		return refused(": its role only reads")
	}
	var best *Grant // the first; of those for raises the one that goes furthest
	why := ": no grant"
	for _, g := range h.grants {
		switch {
		case !g.covers(d.Kind, d.Name) || !slices.Contains(g.Verbs, d.Verb):
		case d.Verb == Raise && d.Jump > g.MaxRaise:
			why = fmt.Sprintf(" by %d: its grant goes as far as %d", d.Jump, g.MaxRaise)
		case best == nil || d.Verb == Raise && g.MaxRaise > best.MaxRaise:
			best = g
		}
	}
	if best != nil {
		return best, nil
	}
	return refused(why)
}
