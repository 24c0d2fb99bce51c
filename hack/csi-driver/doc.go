// Command csi-driver gives the local cluster volumes that have a true size: each is a file with an XFS file system in it,
// mounted through a loop device on the node that it was made for. They fill up, grow while in use and go with their
// claims. Files and mounts are in internal/volume, the CSI protocol is in internal/driver; neither is of use outside tests.
package main
