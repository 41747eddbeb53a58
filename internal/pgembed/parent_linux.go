package pgembed

import "syscall"

// endWithParent makes the kernel send the child an interrupt, for PostgreSQL a
// fast shutdown, when the thread that forks it ends. The caller keeps that thread.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
