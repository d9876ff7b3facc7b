package membership

// Count is the number of members of one role that this node believes to be in one state.
type Count struct {
	Role  Role
	State State
	N     int
}

// Counts sums the members up, this node among them: one Count for every role and state,
// also where N is 0, so that a metric made of it does not come and go. A member whose
// role was not understood is in none.
func (v *View) Counts() []Count {
	var counts []Count
	members := v.Members()
	for _, role := range []Role{RoleStore, RoleAlloc, RoleRouter} {
		for _, state := range []State{StateAlive, StateDead, StateLeft} {
			c := Count{Role: role, State: state}
			for _, m := range members {
				if m.Meta.Role == role && m.State == state {
					c.N++
				}
			}
			counts = append(counts, c)
		}
	}
	return counts
}
