//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// protocolOutput sets stdout aside for the protocol: it returns a duplicate of
// it and makes descriptor 1 another name of stderr, so that whatever a
// dependency prints, even one that kept os.Stdout in a variable, goes there.
func protocolOutput(stdout, stderr *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(stdout.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	if err := unix.Dup2(int(stderr.Fd()), int(stdout.Fd())); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "protocol"), nil
}
