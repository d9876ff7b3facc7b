package snowflake

// Apart reports whether their datacenters keep the IDs of dc under l and of otherDC under other from ever
// being equal: the two differ in a bit that both layouts give to the datacenter. If a datacenter is too
// large for its layout, it has no IDs. If a layout has no datacenter field, its datacenter is ignored, and
// nothing keeps its IDs apart.
func (l Layout) Apart(dc Datacenter, other Layout, otherDC Datacenter) bool {
	if l.HasDatacenter() && dc > l.MaxDatacenter() || other.HasDatacenter() && otherDC > other.MaxDatacenter() {
		return true
	}
	const k = kindDatacenter
	both := l.max(k) << l.shift[k] & (other.max(k) << other.shift[k])
	return (uint64(dc)<<l.shift[k]^uint64(otherDC)<<other.shift[k])&both != 0
}
