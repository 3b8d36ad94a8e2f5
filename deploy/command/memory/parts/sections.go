package parts

import "strings"

const maxLevel = 6 // of a heading

// sectionsOf are the sections of a Markdown text, and its title: that of its front matter, or its first heading of the first level.
func sectionsOf(text string) (title string, sections []section) {
	title, text = frontMatter(text)
	var (
		above [maxLevel]string
		body  strings.Builder
		fence string
	)
	flush := func() {
		if strings.TrimSpace(body.String()) != "" {
			s := section{text: body.String()}
			for _, h := range above {
				if h != "" {
					s.headings = append(s.headings, h)
				}
			}
			sections = append(sections, s)
		}
		body.Reset()
	}
	for line := range strings.Lines(text) {
		if fence = fenced(fence, line); fence == "" {
			if level, heading := headingOf(line); level > 0 {
				flush()
				above[level-1] = heading
				clear(above[level:])
				if level == 1 && title == "" {
					title = heading
				}
				continue
			}
		}
		body.WriteString(line)
	}
	flush()
	return title, sections
}

// headingOf is the level of a heading such as "## Berths", and its text; 0: the line is none.
func headingOf(line string) (level int, text string) {
	line = strings.TrimRight(line, " \t\n")
	rest := strings.TrimLeft(line, "#")
	level = len(line) - len(rest)
	if level == 0 || level > maxLevel || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0, ""
	}
	return level, strings.TrimSpace(strings.TrimRight(rest, "#"))
}

// fenced is the mark that ends the block of code in which the text is after a line; empty: it is in none.
func fenced(open, line string) string {
	line = strings.TrimSpace(line)
	switch {
	case open != "":
		if strings.HasPrefix(line, open) && strings.Trim(line, open[:1]) == "" {
			return ""
		}
		return open
	case strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~"):
		return line[:len(line)-len(strings.TrimLeft(line, line[:1]))]
	default:
		return ""
	}
}

// frontMatter takes the lines between "---" off the beginning of a text, and returns the title that they name.
func frontMatter(text string) (title, rest string) {
	after, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", text
	}
	head, rest, ok := strings.Cut(after, "\n---\n")
	if !ok {
		return "", text
	}
	for line := range strings.Lines(head) {
		if value, ok := strings.CutPrefix(line, "title:"); ok {
			title = strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return title, rest
}
