// Package setadmin moves sections between Sets: it asks the nodes of both, and of the root, for
// the steps in their order. It keeps nothing that is not in the documents, so a Mover may end
// anywhere, or run twice at once; the next one finishes, or takes the move back.
//
// A Set that was restored has every section in limbo, and a Settlement asks all other Sets. A
// Set that has a section active keeps it. A section that no Set has is refused by all others
// under a new number, so that no delayed step counts; then the restored Set continues above its
// own max, its former ceilings, the registers of the others, and a bump. The others first note
// in their Records above what the section begins, so a later settlement knows it without the
// root's disks.
//
// If several Sets were restored, any order will do. A section in limbo in more than one goes to
// the Set that the map names, or to the first one, and begins above all their registers by two
// bumps for each era that they ever began. A map from a backup may lack a Set, so a settlement
// also asks the others for Sets that it lacks.
//
// The rules of the steps are in package sets, and each node checks those that it takes.
package setadmin
