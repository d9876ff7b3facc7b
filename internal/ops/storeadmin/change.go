package storeadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seqsvr/seqsvr/internal/wire/storeclient"
	"github.com/seqsvr/seqsvr/quorum"
	"github.com/seqsvr/seqsvr/seq"
)

// Step is one part of a change. Its effect lasts, and the cluster serves before and after it.
type Step struct {
	Name string // for people
	Run  func(ctx context.Context) error
}

// Run runs the steps, and tells each one's name before it begins; tell may be nil. After
// an error, plan again: the new plan begins where this one stopped.
func Run(ctx context.Context, steps []Step, tell func(name string)) error {
	for _, s := range steps {
		if tell != nil {
			tell(s.Name)
		}
		if err := s.Run(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	return nil
}

// minVoters is the least number of voters that Remove leaves without force: with two,
// the loss of either stops the cluster.
const minVoters = 3

// Replace plans to put the new store at the address, which init made as a learner, in
// the place of an old one, named by name or uuid. If that one serves, force must say
// why. No step is left if it was done already. Errors: ErrNoMember, ErrAlive,
// ErrTooFew, ErrNotNew, ErrUnderWay, seq.ErrForeignCluster, seq.ErrBadMapping, quorum.ErrZones.
func (c *Care) Replace(ctx context.Context, old, addr, force string) ([]Step, error) {
	fresh, err := c.newcomer(ctx, addr)
	if err != nil {
		return nil, err
	}
	gone, isMember := c.find(old)
	me, listed := c.list.Find(fresh.UUID)
	switch {
	case listed && !me.Learner && (!isMember || gone.UUID == me.UUID):
		return nil, nil
	case listed && me.Learner && (!isMember || gone.UUID == me.UUID):
		return c.resume(), nil
	case listed || c.busy():
		return nil, c.underWay()
	case !isMember:
		return nil, fmt.Errorf("%w: %q, the list has %v", ErrNoMember, old, c.names())
	}
	if c.list.N() == 1 {
		return nil, fmt.Errorf("%w: %s is the only one; add another, then remove it", ErrTooFew, gone.Name)
	}
	if force == "" && c.serves(ctx, gone) {
		return nil, fmt.Errorf("%w: %s; stop it first, or say with --force why it is to go", ErrAlive, gone.Name)
	}
	if err := c.locate(ctx); err != nil {
		return nil, err
	}
	next := quorum.MemberList{Members: without(c.list.Members, gone.UUID)}
	next.W = min(c.list.W, len(next.Members))
	next.R = next.W
	next.Members = append(next.Members, fresh)
	if err := c.apart(next.Members, c.list.W); err != nil {
		return nil, err
	}
	d := decision{R: c.list.R, W: c.list.W, Why: "replace " + gone.Name + " by " + fresh.Name}
	if quorum.Overlap(c.list, next) != nil {
		d.R = max(d.R, d.W) // as raise has it, for the way back
	}
	if force != "" {
		d.Why += ", forced: " + force
	}
	return slices.Concat(c.raise(next), []Step{
		{"bring every store up to date", c.repair},
		{"take " + gone.Name + " out, and " + fresh.Name + " in as a learner", func(ctx context.Context) error {
			d.Before = c.list
			return c.decide(ctx, next, d)
		}},
	}, c.finish()), nil
}

// Add plans to add the new store at the address, which init made as a learner. N, R and W change with it.
// Add returns the errors of Replace.
func (c *Care) Add(ctx context.Context, addr string) ([]Step, error) {
	fresh, err := c.newcomer(ctx, addr)
	if err != nil {
		return nil, err
	}
	me, listed := c.list.Find(fresh.UUID)
	switch {
	case listed && !me.Learner:
		return nil, nil
	case listed:
		return c.resume(), nil
	case c.busy():
		return nil, c.underWay()
	}
	if err := c.locate(ctx); err != nil {
		return nil, err
	}
	// With R of at least W a list of one voter more may follow; see raise.
	next := quorum.MemberList{R: max(c.list.R, c.list.W), W: c.list.W, Members: append(slices.Clone(c.list.Members), fresh)}
	w := majority(c.list.N() + 1)
	if err := c.apart(next.Members, w); err != nil {
		return nil, err
	}
	d := decision{Before: c.list, R: w, W: w, Why: "add " + fresh.Name}
	return append([]Step{
		{"take " + fresh.Name + " in as a learner", func(ctx context.Context) error { return c.decide(ctx, next, d) }},
	}, c.finish()...), nil
}

// Remove plans to do without a voter, named by name or uuid. N, R and W change with it.
// force says why fewer than three are to be left. Errors: ErrNoMember, ErrTooFew,
// ErrUnderWay; of the first step quorum.ErrZones.
func (c *Care) Remove(old, force string) ([]Step, error) {
	gone, isMember := c.find(old)
	n := c.list.N() - 1
	switch {
	case c.busy():
		return nil, c.underWay()
	case !isMember:
		return nil, fmt.Errorf("%w: %q, the list has %v", ErrNoMember, old, c.names())
	case n < 1 || n < minVoters && force == "":
		return nil, fmt.Errorf("%w: %d would be left; --force says why", ErrTooFew, n)
	}
	w := majority(n)
	next := quorum.MemberList{R: max(w, n-w+1), W: w, Members: without(c.list.Members, gone.UUID)}
	d := decision{Why: "remove " + gone.Name}
	if force != "" {
		d.Why += ", forced: " + force
	}
	return slices.Concat([]Step{
		{"look at the zones of those left", func(ctx context.Context) error {
			if err := c.locate(ctx); err != nil {
				return err
			}
			next.Members = without(c.list.Members, gone.UUID) // with their zones
			return c.apart(next.Members, w)
		}},
	}, c.raise(next), []Step{
		{"bring every store up to date", c.repair},
		{"take " + gone.Name + " out", func(ctx context.Context) error { return c.decide(ctx, next, d) }},
		{"bring those left up to date", c.repair},
	}), nil
}

// Abort plans to go back to the voters from before the change that is half done. A store
// that it took out comes back as it was: it keeps whatever it has, and the stores of
// both lists know the rest. ErrNothing.
func (c *Care) Abort() ([]Step, error) {
	if !c.busy() {
		return nil, ErrNothing
	}
	back := c.last.Before
	back.Members = slices.Clone(back.Members)
	d := decision{Why: "abort: " + c.last.Why}
	return []Step{{"go back to " + fmt.Sprint(namesOf(back.Members)), func(ctx context.Context) error { return c.decide(ctx, back, d) }}}, nil
}

// raise is what comes first if next may not follow the list in force: the same stores, of which a
// read needs as many as a write. Of an even number of stores storesvr init has a read need fewer,
// and a read by the list before could miss what is confirmed with one store more or less. With R of
// at least W none does.
func (c *Care) raise(next quorum.MemberList) []Step {
	if quorum.Overlap(c.list, next) == nil {
		return nil
	}
	return []Step{
		{"bring every store up to date", c.fill},
		{"have a read need as many stores as a write", func(ctx context.Context) error {
			up, d := c.list, decision{Why: "have a read need as many stores as a write"}
			if up.Members, up.R = slices.Clone(up.Members), max(up.R, up.W); c.busy() {
				d = c.last // goes on
			}
			return c.decide(ctx, up, d)
		}},
	}
}

// resume is finish of a change that an earlier command began, or one of a build without raise.
func (c *Care) resume() []Step { return append(c.raise(c.whole()), c.finish()...) }

// finish is what is left once the list has a learner.
func (c *Care) finish() []Step {
	return []Step{
		{"fill the new store from all others, and wait until no lease is older than that", c.fill},
		{"make it a voter", func(ctx context.Context) error { return c.decide(ctx, c.whole(), decision{Why: c.last.Why}) }},
		{"bring every store up to date", c.repair},
	}
}

// fill repairs the list, and has its learner have everything.
func (c *Care) fill(ctx context.Context) error {
	// The command that decided the list may have died before the learner heard of it, and only
	// such commands tell learners.
	if err := c.tell(ctx, c.list); err != nil {
		return err
	}
	return c.repair(ctx)
}

// whole is the list in which the learner of the one in force votes.
func (c *Care) whole() quorum.MemberList {
	next := quorum.MemberList{R: c.last.R, W: c.last.W, Members: slices.Clone(c.list.Members)}
	for i := range next.Members {
		next.Members[i].Learner = false
	}
	return next
}

func majority(n int) int { return n/2 + 1 }

func without(members []quorum.Member, uuid string) []quorum.Member {
	return slices.DeleteFunc(slices.Clone(members), func(m quorum.Member) bool { return m.UUID == uuid })
}

func (c *Care) underWay() error {
	return fmt.Errorf("%w: %s; finish it by the same command as before, or abort it", ErrUnderWay, c.last.Why)
}

func namesOf(members []quorum.Member) []string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = m.Name
	}
	return names
}

// newcomer asks the store at the address what it is: a learner of this cluster without a
// member list, or a member of this one.
func (c *Care) newcomer(ctx context.Context, addr string) (quorum.Member, error) {
	none := quorum.Member{}
	client, err := storeclient.Dial(addr, c.opts...)
	if err != nil {
		return none, err
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	id, err := client.Describe(ctx)
	if err != nil {
		return none, errors.Join(&addressError{addr, err}, client.Close())
	}
	m := quorum.Member{UUID: id.UUID, Name: id.Name, Addr: addressOf(id, client), Learner: true, Zone: id.Zone}
	if c.clients[m.UUID] != nil {
		_ = client.Close() // there is one already
	} else {
		c.clients[m.UUID] = client
	}
	_, listed := c.list.Find(m.UUID)
	switch {
	case id.Ref.Cluster != c.name:
		return none, fmt.Errorf("%w: the store at %s is of %q, this is %q", seq.ErrForeignCluster, addr, id.Ref.Cluster, c.name)
	case id.Ref.Era != c.era:
		return none, fmt.Errorf("%w: the store at %s is of era %d, this is %d", seq.ErrStaleEra, addr, id.Ref.Era, c.era)
	case listed, c.busy(): // with another store: refused by that name, even if that one is gone
		return m, nil
	case id.Ref.Members != 0 || id.N != 0:
		return none, fmt.Errorf("%w: %s at %s: %s; make its disk by storesvr init --learner", ErrNotNew, id.Name, addr, id.State)
	}
	return m, c.sameMapping(ctx, id)
}

// sameMapping compares the sections of a new store with the voters' sections. The new store may lack spaces
// that were added since it was made.
func (c *Care) sameMapping(ctx context.Context, id quorum.Identity) error {
	voters, _, err := c.ask(ctx)
	if err != nil {
		return err
	}
	if !mappingOf(voters).Extends(id.Mapping) {
		return fmt.Errorf("%w: the new store %s has other sections than %s", seq.ErrBadMapping, id.Name, voters[0].Name)
	}
	return nil
}

// mappingOf is the mapping of the most spaces that one of the stores has.
func mappingOf(sources []*source) (m seq.Mapping) {
	for _, s := range sources {
		if s.id.Mapping.Extends(m) {
			m = s.id.Mapping
		}
	}
	return m
}
