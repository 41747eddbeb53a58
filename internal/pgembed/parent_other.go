//go:build unix && !linux

package pgembed

import "syscall"

// endWithParent does nothing: there is no such signal here, and the next Start
// stops the server that was left behind.
func endWithParent(*syscall.SysProcAttr) {}
