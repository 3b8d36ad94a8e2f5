package main

// int80 makes a system call as a program of 32 bits does.
func int80() uint32
