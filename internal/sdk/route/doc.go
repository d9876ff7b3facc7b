// Package route is the room of the SDK that knows who has a section.
//
// A cluster may be one of several Sets, which divide the sections of one mapping. Then a map says
// which Set has a section; it comes with the route tables, from a server of any Set. Each Set looks
// after its own table (set.go), and a View is all tables put together by the map, so that a call finds
// its owner as in a cluster that is alone. Segment tags are the root Set's.
//
// A Table holds to the first life of its cluster that it meets, and leaves it for a later era of the same
// cluster alone (life.go). Spaces that were added are asked for by the first call for one (spaces.go), and
// routers of one's own zone before others (zones.go).
//
// What belongs here: tables, maps, and the addresses of servers. What does not: which server a call asks
// next, and whether one answers. The room needs a dialler, and of a connection little more than that
// it fetches tables.
package route
