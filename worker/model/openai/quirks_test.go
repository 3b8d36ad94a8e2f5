package openai_test

import (
	"slices"
	"testing"
)

// quirks lists what providers are known to do, by number, and the row of a table that fails when it is not handled.
// Some rows have further ones with them. Numbers from 59 on are Anthropic's.
var quirks = []struct {
	number int
	what   string
	row    string
}{
	{1, "keepalive comments", "TestStream/Q1 keepalive comments"},
	{2, "hundreds of keepalives before the first token", "TestStream/Q2 a thousand keepalives"},
	{3, "a comment, then an error", "TestStream/Q3 comment, then error"},
	{4, "CRLF", "TestStream/Q4 CRLF, data on several lines"},
	{5, "no space after data:", "TestStream/Q5 no space"},
	{6, "a byte order mark", "TestStream/Q6 byte order mark"},
	{7, "data on several lines", "TestStream/Q7 data on several lines"},
	{8, "a cut stream", "TestStream/Q8 cut"},
	{9, "no [DONE] after a finish reason", "TestStream/Q9 no [DONE]"},
	{10, "a last line without a newline", "TestStream/Q10 last line without newline"},
	{11, "lines of other fields, and errors by event", "TestStream/Q11 event: error with text"},
	{12, "lines of many KiB", "TestStream/Q12 a line of 300 KB"},
	{13, "a keepalive wrapped as data", "TestStream/Q13 wrapped keepalive"},
	{14, "empty data", "TestStream/Q14 empty pings"},
	{15, "malformed JSON", "TestStream/Q15 malformed chunk"},
	{16, "an error in a 200", "TestStream/Q16 JSON error"},
	{17, "a reply in one piece", "TestStream/Q17 reply in one piece"},
	{18, "a web page in a 200", "TestStream/Q18 HTML"},
	{19, "an error in the stream", "TestStream/Q19 error object"},
	{20, "an error beside a choice", "TestStream/Q20 error beside a choice"},
	{21, "codes and messages of other types", "TestStream/Q21 message as a list"},
	{22, "errors of other forms", "TestRefusals/Q22 detail"},
	{23, "calls that the server could not read", "TestStream/Q23 tool_use_failed"},
	{24, "waits in many forms", "TestRetryAfter/Q24 milliseconds"},
	{25, "calls without an index", "TestStream/Q25 no index, no ids, two tools"},
	{26, "calls with the same index", "TestStream/Q26 colliding index, new id"},
	{27, "ids once or always", "TestStream/Q27 id in each"},
	{28, "no ids", "TestStream/Q28 id is null"},
	{29, "names in each piece", "TestStream/Q29 name in each"},
	{30, "several objects under one index", "TestStream/Q30 several objects are several calls"},
	{31, "several whole calls in a piece", "TestStream/Q31 all in one delta"},
	{32, "arguments as an object", "TestStream/Q32 arguments are an object"},
	{33, "no arguments", "TestStream/Q33 arguments empty"},
	{34, "arguments before the name", "TestStream/Q34 arguments before name"},
	{35, "ids of any shape", "TestStream/Q35 strange ids"},
	{36, "ids that Mistral refuses", "TestDialects/Q36 Mistral's ids"},
	{37, "calls as text", "TestStream/Q37 over several chunks"},
	{38, "stop with calls", "TestStream/Q38 finish stop with calls"},
	{39, "tool_calls although cut by the limit", "TestStream/Q39 half a call, by the limit"},
	{40, "an empty finish reason", "TestStream/Q40 empty reason, then cut"},
	{41, "a choice after the finish reason", "TestStream/Q41 the reason stays"},
	{42, "foreign finish reasons", "TestStream/Q42 PROHIBITED_CONTENT"},
	{43, "no choice, no message", "TestStream/Q43 no choices"},
	{44, "usage in a chunk of its own", "TestStream/Q44 a chunk of its own"},
	{45, "usage with the last choice", "TestStream/Q45 with the last choice"},
	{46, "usage that counts up", "TestStream/Q46 several, counting up"},
	{47, "no usage", "TestStream/Q47 null after it"},
	{48, "a first chunk without choices", "TestStream/Q48 Azure's first chunk"},
	{49, "a choice without delta", "TestStream/Q49 no delta"},
	{50, "a moderation chunk", "TestStream/Q50 moderation chunk"},
	{51, "content as a list", "TestStream/Q51 content is a list"},
	{52, "reasoning under three names", "TestStream/Q52 reasoning"},
	{53, "unknown fields", "TestStream/Q53 unknown extras"},
	{54, "types that drift", "TestStream/Q54 types drift"},
	{55, "DeepSeek wants its reasoning back", "TestDialects/Q55 DeepSeek wants reasoning_content everywhere"},
	{56, "Gemini wants its signatures back", "TestEcho/Q56 Gemini's thought signatures"},
	{57, "calls without content", "TestDialects/Q57 content beside tool calls"},
	{58, "strict servers", "TestDialects/Q58 Mistral forbids stream_options"},
}

func TestEveryQuirkHasATest(t *testing.T) {
	var rows []string
	for _, c := range streamCases() {
		rows = append(rows, "TestStream/"+c.name)
	}
	for _, c := range refusalCases() {
		rows = append(rows, "TestRefusals/"+c.name)
	}
	for _, c := range retryAfterCases() {
		rows = append(rows, "TestRetryAfter/"+c.name)
	}
	for _, c := range dialectCases() {
		rows = append(rows, "TestDialects/"+c.name)
	}
	for _, c := range echoCases() {
		rows = append(rows, "TestEcho/"+c.name)
	}
	for i, q := range quirks {
		if q.number != i+1 {
			t.Fatalf("quirk %d follows %d", q.number, i)
		}
		if !slices.Contains(rows, q.row) {
			t.Errorf("quirk %d (%s): there is no row %q", q.number, q.what, q.row)
		}
	}
	if len(quirks) != 58 {
		t.Errorf("%d quirks", len(quirks))
	}
}
