// Package top is the command `longshore top`: what a fleet does, anew every second. The model changes by events, answers and
// keys alone, and its picture is lines of text; Bubble Tea draws them.
package top
