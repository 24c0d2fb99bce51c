// Command writer writes rows as an application does, through the read-write
// Service with the server verified in full, and keeps a journal of what became of
// each write. It runs in a pod under the restricted Pod Security level, with the
// application Secret of a cluster mounted.
//
//	writer run --interval 20ms --limit 1s   write until told to stop, in both modes at once
//	writer stop                             let run end, and wait until it has
//	writer count                            how many writes were acknowledged in each mode
//	writer journal                          print the journal, one JSON object a line
//	writer rows                             print the rows that the table holds now
//
// What follows from a journal is in the package journal; how a test starts the pod
// is in test/live.
package main
