// Package catalog has the commands about what a fleet keeps: agents, prompts, sessions and schedules.
package catalog
