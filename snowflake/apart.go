package snowflake

// Apart tells whether their datacenters keep the IDs of dc under l from ever being equal to those
// of otherDC under other: some bit that both layouts give to the datacenter differs. A datacenter
// that has no place in its layout has no IDs. Without that field a layout's datacenter is not
// looked at, and nothing keeps its IDs apart.
func (l Layout) Apart(dc Datacenter, other Layout, otherDC Datacenter) bool {
	if l.HasDatacenter() && dc > l.MaxDatacenter() || other.HasDatacenter() && otherDC > other.MaxDatacenter() {
		return true
	}
	const k = kindDatacenter
	both := l.max(k) << l.shift[k] & (other.max(k) << other.shift[k])
	return (uint64(dc)<<l.shift[k]^uint64(otherDC)<<other.shift[k])&both != 0
}
