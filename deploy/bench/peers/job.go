//go:build linux

package main

import "strings"

// unit is a job: one unit of work of a run.
type unit struct {
	Run  int    `json:"run"`
	Unit int    `json:"unit"` // from 1
	Text string `json:"text"`
}

// textSize is that of Longshore's workload.
const textSize = 500

func text() string { return strings.Repeat("all work and no play ", textSize/21+1)[:textSize] }

// Kind implements river.JobArgs.
func (unit) Kind() string { return "unit" }
