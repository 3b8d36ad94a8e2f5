package schedules

import (
	"fmt"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones must not depend on the machine

	"github.com/netresearch/go-cron"

	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
	"github.com/longshore-run/longshore/messages/strict"
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
func newCalendar(s *control.Schedule) (*calendar, error) {
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
		return nil, err
	}
	s, err := parser.Parse(spec)
	if err != nil {
		return nil, &messages.FieldError{Field: "cron", Reason: whatIsWrong(&parser, spec)}
	}
	if _, isCron := s.(*cron.SpecSchedule); !isCron { // @every is not counted from anything
		return nil, &messages.FieldError{Field: "cron", Reason: "use the field every instead of @every"}
	}
	return s, nil
}

// cronFields are those of six; with five the first is left out.
func cronFields() []cronField {
	return []cronField{
		{"second", "0 to 59"},
		{"minute", "0 to 59"},
		{"hour", "0 to 23"},
		{"day of month", "1 to 31"},
		{"month", "1 to 12 or jan to dec"},
		{"day of week", "0 to 7 or sun to sat"},
	}
}

type cronField struct{ name, values string }

// whatIsWrong says what of a cron that cannot be read is wrong, in our words: the library's are of its own parts.
func whatIsWrong(parser *cron.Parser, spec string) string {
	const form = "five fields (minute, hour, day, month, weekday) such as 30 8 * * mon-fri, six with seconds first, or a word such as @daily"
	given := strings.Fields(spec)
	if strings.HasPrefix(spec, "@") {
		return fmt.Sprintf("%q is not a known time: use @hourly, @daily, @weekly, @monthly or @yearly", strict.Clip(spec, 64))
	}
	fields := cronFields()
	most := len(fields)
	if len(given) < most-1 || len(given) > most {
		return fmt.Sprintf("has %d of the fields: it must have %s", len(given), form)
	}
	for i, f := range fields[most-len(given):] {
		alone := slices.Repeat([]string{"*"}, len(given))
		alone[i] = given[i]
		if _, err := parser.Parse(strings.Join(alone, " ")); err != nil {
			return fmt.Sprintf("the field for the %s, %q, cannot be read: it must be %s, *, a range such as 1-5, a list such as 1,3 or steps such as */5",
				f.name, strict.Clip(given[i], 64), f.values)
		}
	}
	return "cannot be read: it must have " + form
}

// next is the first occurrence after a time; false: there is none left.
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
