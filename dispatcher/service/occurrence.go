package service

import (
	"time"
	_ "time/tzdata" // zones must not depend on the machine

	"github.com/netresearch/go-cron"

	"github.com/longshore-run/longshore/messages"
)

// shownNext is how many occurrences a status shows.
const shownNext = 3

// A calendar finds the occurrences of a schedule.
type calendar struct {
	every time.Duration
	cron  cron.Schedule
	zone  *time.Location
	until *time.Time
}

// newCalendar returns a *messages.FieldError when the schedule's cron or time zone means nothing.
func newCalendar(s *messages.Schedule) (*calendar, error) {
	c := &calendar{every: time.Duration(s.Every), until: s.Until}
	if s.Cron == "" {
		return c, nil
	}
	var err error
	if c.zone, err = time.LoadLocation(s.TimeZone); err != nil || s.TimeZone == "Local" { // that of which machine?
		return nil, &messages.FieldError{Field: "timeZone", Reason: "is unknown: it must be one such as Europe/Berlin"}
	}
	if c.cron, err = parseCron(s.Cron); err != nil {
		return nil, err
	}
	if c.cron.Next(time.Now().In(c.zone)).IsZero() {
		return nil, &messages.FieldError{Field: "cron", Reason: "has no occurrence in the next years"}
	}
	return c, nil
}

func parseCron(spec string) (cron.Schedule, error) {
	const fields = cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom | cron.Descriptor
	for _, r := range spec {
		if r < ' ' || r > '~' || r == '=' { // TZ= would be a second way to say the zone
			return nil, &messages.FieldError{Field: "cron", Reason: "has a character that has no meaning there"}
		}
	}
	parser, err := cron.TryNewParser(fields)
	if err != nil {
		return nil, err //nolint:wrapcheck // the fields are ours
	}
	s, err := parser.Parse(spec)
	if err != nil {
		return nil, &messages.FieldError{Field: "cron", Reason: messages.Clip(err.Error(), 200)}
	}
	if _, isCron := s.(*cron.SpecSchedule); !isCron { // @every is not counted from anything
		return nil, &messages.FieldError{Field: "cron", Reason: "use the field every instead of @every"}
	}
	return s, nil
}

// next is the first occurrence after a time; false: there is none any more.
func (c *calendar) next(after time.Time) (time.Time, bool) {
	var at time.Time
	if c.cron != nil {
		at = c.cron.Next(after.In(c.zone)).UTC()
	} else {
		at = time.Unix(0, 0).UTC().Add(after.Sub(time.Unix(0, 0)).Truncate(c.every) + c.every)
	}
	return at, at.After(after) && (c.until == nil || !at.After(*c.until))
}

// some are the first occurrences after a time.
func (c *calendar) some(after time.Time) []time.Time {
	out := []time.Time{}
	for range shownNext {
		at, ok := c.next(after)
		if !ok {
			break
		}
		out = append(out, at)
		after = at
	}
	return out
}
