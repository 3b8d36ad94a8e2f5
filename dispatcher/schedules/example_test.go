package schedules_test

import (
	"fmt"
	"time"

	"github.com/longshore-run/longshore/dispatcher/schedules"
)

// A schedule is a task and when to submit it. Each occurrence has an id of its own, so it makes one run however often
// it is submitted.
func ExampleParse() {
	s, err := schedules.Parse([]byte(`
apiVersion: longshore.run/v1
kind: Schedule
metadata:
  name: morning-report
spec:
  cron: "0 8 * * mon-fri"
  timeZone: Europe/Berlin
  task:
    input: Write the morning report to report.md.
`))
	if err != nil {
		panic(err)
	}
	s.Tenant = "acme"
	s.SetDefaults()
	fmt.Println(s.Timing(), s.Overlap, s.CatchUp, s.Validate())
	task := s.TaskAt(time.Date(2026, 1, 2, 7, 0, 0, 0, time.UTC))
	fmt.Println(task.ID, task.Labels)
	// Output:
	// Europe/Berlin 0 8 * * mon-fri skip one <nil>
	// morning-report-20260102T070000 map[schedule:morning-report scheduledFor:2026-01-02T07:00:00Z]
}
