// Package globalid is the snowflake endpoint of an AllocSvr: the service that hands out IDs,
// at a node and over gRPC.
//
// It guarantees that an ID is handed out at most once in its namespace: a request draws from
// one worker id that the node holds, within a window of time that the stores have confirmed
// (package workers), in a layout that cannot change in a way that repeats IDs (package
// namespaces).
//
// What belongs here: finding what a request means, counting what was handed out, translating
// from and to gRPC. What does not: registers and documents, which this package never touches,
// layouts and generators (package snowflake), HTTP.
package globalid
