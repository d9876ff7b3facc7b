package router

import (
	"context"
	"slices"

	"github.com/seqsvr/seqsvr/client"
	"github.com/seqsvr/seqsvr/internal/wire/gate"
	"github.com/seqsvr/seqsvr/seq"
)

// admission lets calls in, by the Sets that they are for.
type admission struct {
	sdk    *client.Client
	inWork *gate.Admission
}

func newDoor(sdk *client.Client, inWork *gate.Admission) admission {
	inWork.NameSets(func(set int) string {
		if all := sdk.Sets().All; set < len(all) {
			return all[set].Name
		}
		return ""
	})
	return admission{sdk, inWork}
}

// one begins a call for one key, which is a string key unless that is empty.
func (d admission) one(ctx context.Context, space string, uid seq.UID, key string) (*gate.Place, error) {
	if key != "" {
		return d.inWork.Enter(ctx, 1, d.sdk.Caller().Table().View().SetsOf(space, nil, []string{key})...)
	}
	return d.inWork.Enter(ctx, 1, d.sdk.Caller().Table().View().SetsOf(space, []seq.UID{uid}, nil)...)
}

// whole admits a call for all of the uids or refuses the whole call. enter is Admission.Enter or
// Admission.Try.
func (d admission) whole(ctx context.Context, space string, uids []seq.UID, enter func(context.Context, int, ...int) (*gate.Place, error)) (*gate.Place, error) {
	sets := d.sdk.Caller().Table().View().SetsOf(space, uids, nil)
	slices.Sort(sets)
	sets = slices.Compact(sets)
	place, err := enter(ctx, len(uids), sets...)
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		if err := place.Refused(set); err != nil {
			place.Leave()
			return nil, err
		}
	}
	return place, nil
}

// any begins a call that no one Set is asked for.
func (d admission) any(ctx context.Context) (*gate.Place, error) { return d.inWork.Enter(ctx, 0) }

// root begins a call for what the root Set alone has, such as tags.
func (d admission) root(ctx context.Context) (*gate.Place, error) {
	m, ok := d.sdk.Caller().Table().Mapping()
	if !ok || d.sdk.Caller().Table().View().SetsOf(m.Spaces[0].Name, []seq.UID{0}, nil) == nil {
		return d.any(ctx)
	}
	return d.inWork.Enter(ctx, 0, 0)
}
