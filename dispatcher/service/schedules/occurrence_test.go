package schedules

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// The occurrences of a schedule by the clock of its zone, over the days on which that is changed too.
func TestOccurrences(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		schedule control.Schedule
		after    string
		want     []string
	}{
		"five fields": {
			control.Schedule{Cron: "30 8 * * *", TimeZone: "UTC"},
			"2026-11-22T08:30:00Z",
			[]string{"2026-11-23T08:30:00Z", "2026-11-24T08:30:00Z", "2026-11-25T08:30:00Z"},
		},
		"six fields": {
			control.Schedule{Cron: "15 30 8 * * *", TimeZone: "UTC"},
			"2026-11-22T08:30:14.9Z",
			[]string{"2026-11-22T08:30:15Z", "2026-11-23T08:30:15Z", "2026-11-24T08:30:15Z"},
		},
		"a word": {
			control.Schedule{Cron: "@monthly", TimeZone: "UTC"},
			"2026-11-22T08:30:00Z",
			[]string{"2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z", "2027-02-01T00:00:00Z"},
		},
		"days by name": {
			control.Schedule{Cron: "0 9 * * mon-fri", TimeZone: "America/New_York"},
			"2026-03-06T15:00:00Z",
			[]string{"2026-03-09T13:00:00Z", "2026-03-10T13:00:00Z", "2026-03-11T13:00:00Z"}, // summer time by then
		},
		"day of month or of week": {
			control.Schedule{Cron: "0 12 13 * 5", TimeZone: "UTC"},
			"2026-05-02T00:00:00Z",
			[]string{"2026-05-08T12:00:00Z", "2026-05-13T12:00:00Z", "2026-05-15T12:00:00Z"},
		},
		"an hour that does not come": {
			control.Schedule{Cron: "30 2 * * *", TimeZone: "Europe/Berlin"},
			"2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z", "2026-03-31T00:30:00Z"}, // 03:30 on that day
		},
		"an hour that comes twice": {
			control.Schedule{Cron: "30 2 * * *", TimeZone: "Europe/Berlin"},
			"2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"},
		},
		"every hour of that night": {
			control.Schedule{Cron: "@hourly", TimeZone: "Europe/Berlin"},
			"2026-10-24T23:30:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"},
		},
		"a midnight that does not come": { // Egypt's clocks go from 00:00 to 01:00
			control.Schedule{Cron: "0 12 * * 6", TimeZone: "Africa/Cairo"},
			"2026-04-19T12:00:00Z",
			[]string{"2026-04-25T09:00:00Z", "2026-05-02T09:00:00Z", "2026-05-09T09:00:00Z"},
		},
		"half an hour off": {
			control.Schedule{Cron: "0 0 * * *", TimeZone: "Asia/Kolkata"},
			"2026-11-22T00:00:00Z",
			[]string{"2026-11-22T18:30:00Z", "2026-11-23T18:30:00Z", "2026-11-24T18:30:00Z"},
		},
		"an interval": {
			control.Schedule{Every: messages.Duration(6 * time.Hour)},
			"2026-11-22T06:00:00Z",
			[]string{"2026-11-22T12:00:00Z", "2026-11-22T18:00:00Z", "2026-11-23T00:00:00Z"},
		},
		"an end": {
			control.Schedule{Every: messages.Duration(time.Hour), Until: new(time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC))},
			"2026-11-22T06:30:00Z",
			[]string{"2026-11-22T07:00:00Z", "2026-11-22T08:00:00Z"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := newCalendar(&tc.schedule)
			if err != nil {
				t.Fatal(err)
			}
			after, err := time.Parse(time.RFC3339, tc.after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, at := range c.some(after) {
				got = append(got, at.Format(time.RFC3339))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A cron that cannot be read is refused in words that name the part of it, and how it is written.
func TestACronIsRefusedInPlainWords(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"61 * * * *":                   `the field for the minute, "61", cannot be read: it must be 0 to 59, *, a range such as 1-5, a list such as 1,3 or steps such as */5`,
		"0 8 * * nonday":               `the field for the day of week, "nonday", cannot be read: it must be 0 to 7 or sun to sat, *, a range`,
		"x 0 8 * * *":                  `the field for the second, "x", cannot be read: it must be 0 to 59`,
		"0 99999999999999999999 * * *": `the field for the hour, "99999999999999999999", cannot be read: it must be 0 to 23`,
		"*":                            "has 1 of the fields: it must have five fields (minute, hour, day, month, weekday) such as 30 8 * * mon-fri",
		"@never":                       `"@never" is not a known time: use @hourly, @daily`,
	} {
		s := control.Schedule{Cron: spec, TimeZone: "UTC"}
		_, err := newCalendar(&s)
		field, ok := errors.AsType[*messages.FieldError](err)
		if !ok || field.Field != "cron" || !strings.HasPrefix(field.Reason, want) {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

// Whatever a schedule says, it is refused with the name of the field, or has occurrences that come later and later.
func FuzzCalendar(f *testing.F) {
	for _, spec := range []string{"* * * * *", "0 0 30 2 *", "@daily", "@every 1s", "TZ= ", "TZ=UTC 1", "5-1/2 ? * L W#3", "*/7,3-9 * * jan 7", "H 3 * * *"} {
		f.Add(spec, "Europe/Berlin")
		f.Add(spec, "..")
	}
	f.Fuzz(func(t *testing.T, spec, zone string) {
		s := control.Schedule{Name: "n", Cron: spec, TimeZone: zone, Task: messages.Task{Input: messages.TextInput("x")}}
		s.SetDefaults()
		if s.Validate() != nil {
			return
		}
		c, err := newCalendar(&s)
		if err != nil {
			if _, ok := errors.AsType[*messages.FieldError](err); !ok {
				t.Fatalf("%q in %q: %v", spec, zone, err)
			}
			return
		}
		last := time.Now()
		for _, at := range c.some(last) {
			if !at.After(last) || at.Nanosecond() != 0 {
				t.Fatalf("%q in %q: %s after %s", spec, zone, at, last)
			}
			last = at
		}
	})
}
