//go:build !unix

package main

import "os"

// protocolOutput sets stdout aside for the protocol. Here only the variable can
// be exchanged: what writes to os.Stdout from now on goes to stderr.
func protocolOutput(stdout, stderr *os.File) (*os.File, error) {
	os.Stdout = stderr
	return stdout, nil
}
