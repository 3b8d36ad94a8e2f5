package runner

import (
	"testing"

	"github.com/longshore-run/longshore/messages/record"
)

func TestWeigh(t *testing.T) {
	const most = 5
	for name, tc := range map[string]struct {
		losses   losses
		evidence evidence
		attempts int
		want     verdict
	}{
		"one of many that died together":              {losses{workers: 1}, evidence{lost: 1}, 1, inTheOpen},
		"a first loss in a tool call":                 {losses{workers: 1, acting: true}, evidence{lost: 1}, 0, inTheOpen},
		"a second loss":                               {losses{workers: 2}, evidence{lost: 2}, 2, inQuarantine},
		"a second loss, and nothing is known":         {losses{workers: 2}, evidence{}, 2, inQuarantine},
		"a second loss in a storm":                    {losses{workers: 2}, evidence{lost: 5}, 2, inTheOpen},
		"another was the cause":                       {losses{workers: 2}, evidence{convicted: true}, 2, inTheOpen},
		"another was the cause of one only":           {losses{workers: 2}, evidence{lost: 1, convicted: true}, 2, inQuarantine},
		"alone, and nothing else was lost":            {losses{workers: 3, alone: true}, evidence{lost: 3, trials: 1, known: true}, 2, isPoison},
		"alone, and others were lost too":             {losses{workers: 3, alone: true}, evidence{lost: 4, trials: 1, known: true}, 2, inQuarantine},
		"alone at first, and another joined":          {losses{workers: 3, alone: true}, evidence{lost: 3, trials: 2, known: true}, 3, inQuarantine},
		"alone, as far as the log says":               {losses{workers: 3, alone: true}, evidence{lost: 3}, 3, inQuarantine},
		"beside others on trial":                      {losses{workers: 3}, evidence{lost: 3, trials: 1, known: true}, 3, inQuarantine},
		"two losses alone are no proof":               {losses{workers: 2, alone: true}, evidence{lost: 2, trials: 1, known: true}, 2, inQuarantine},
		"at the most attempts":                        {losses{workers: 5}, evidence{lost: 5}, most, isPoison},
		"at the most attempts, nothing is known":      {losses{workers: 5}, evidence{}, most, isPoison},
		"at the most attempts in a storm":             {losses{workers: 5}, evidence{lost: 11}, most, inTheOpen},
		"at the most attempts, as others were lost":   {losses{workers: 5}, evidence{lost: 10}, most, inQuarantine},
		"at the most attempts, another was the cause": {losses{workers: 5}, evidence{convicted: true}, most, inTheOpen},
		"at the most attempts, another was at times":  {losses{workers: 5}, evidence{lost: 2, convicted: true}, most, inQuarantine},
		"at the most attempts, another was elsewhere": {losses{workers: 5}, evidence{lost: 5, convicted: true}, most, isPoison},
		"far beyond the most attempts":                {losses{workers: 15}, evidence{lost: 20}, maxUnclaimed * most, isPoison},
		"far beyond the most attempts in a storm":     {losses{workers: 15}, evidence{lost: 52}, maxUnclaimed * most, isPoison},
		"failures of the platform":                    {losses{}, evidence{}, most, isPoison},
		"failures of the platform, not yet":           {losses{}, evidence{}, most - 1, inTheOpen},
	} {
		if got := tc.losses.weigh(tc.evidence, tc.attempts, most); got != tc.want {
			t.Errorf("%s: verdict %d, want %d", name, got, tc.want)
		}
	}
}

func TestLossesOfALog(t *testing.T) {
	claim := func() record.Record { return &record.Claimed{Claim: "c", Ticket: 7} }
	start := []record.Record{&record.Started{}, claim(), &record.StepStarted{Step: 1}}
	acts := []record.Record{&record.ModelReplied{Step: 1}, &record.ToolStarted{Step: 1}}
	for name, tc := range map[string]struct {
		log  [][]record.Record
		want losses
	}{
		"begun":                     {[][]record.Record{start}, losses{}},
		"lost in its model call":    {[][]record.Record{start, {claim()}}, losses{workers: 1}},
		"lost twice there":          {[][]record.Record{start, {claim()}, {claim()}}, losses{workers: 2}},
		"lost in a tool call":       {[][]record.Record{start, acts, {claim()}}, losses{workers: 1, acting: true}},
		"progress in between":       {[][]record.Record{start, {claim()}, acts}, losses{acting: true}},
		"handed back":               {[][]record.Record{start, {&record.Released{}}, {claim()}}, losses{}},
		"handed back after a loss":  {[][]record.Record{start, {claim()}, {&record.Released{}}, {claim()}}, losses{workers: 1}},
		"parked":                    {[][]record.Record{start, {claim()}, {&record.Parked{}}}, losses{}},
		"the tool returned":         {[][]record.Record{start, acts, {&record.ToolReturned{}, &record.StepEnded{}, &record.StepStarted{Step: 2}}}, losses{}},
		"one of two tools returned": {[][]record.Record{start, acts, {&record.ToolReturned{}}}, losses{acting: true}},
	} {
		var l losses
		var prev record.Head
		for _, records := range tc.log {
			h := record.Follow(prev, records...)
			l.count(&prev, &h)
			prev = h
		}
		if l != tc.want {
			t.Errorf("%s: %+v, want %+v", name, l, tc.want)
		}
	}
}
