//go:build !unix

package main

func raiseFiles() error { return nil }

func mayOpen() int { return 1 << 20 }
