//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// apart keeps the keeper out of the reach of a Ctrl-C at the terminal, which
// comes before the server has finished.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
