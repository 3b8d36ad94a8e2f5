package browser_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/longshore-run/longshore/deploy/settings"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/worker/model"
	"github.com/longshore-run/longshore/worker/model/scripted"
)

// picturesVariable names the folder that gets the pictures of the README. Unset, they are made and thrown away.
const picturesVariable = "LONGSHORE_PICTURES"

const (
	mostPicture   = 200 << 10 // bytes of a picture: the README loads it
	pictureWidth  = 1280
	pictureHeight = 1000
)

const quayScript = `
model: large-2
scenes:
  - match: MV Aurora
    turns:
      - text: "I read the stay and the tariff."
        calls: [{name: read_file, arguments: {filePath: stay.md}}, {name: read_file, arguments: {filePath: tariff.md}}]
        delay: 900ms
        usage: {input: 3120, output: 88}
      - text: "Four nights at berth 7. I look for a discount, and note the sum."
        calls: [{name: search_files, arguments: {pattern: discount}}, {name: scratchpad_append, arguments: {stream: sums, text: "4 nights at 1,240 euros are 4,960 euros"}}]
        delay: 1500ms
        usage: {input: 3890, output: 214}
      - text: "There is none. I write the invoice, and a note for the ship's agent."
        calls:
          - {name: write_file, arguments: {filePath: invoice.md, content: "# Invoice 2208\n\nMV Aurora, berth 7, 4 nights at 1,240 euros\n\nTotal: 4,960 euros\n"}}
          - {name: write_file, arguments: {filePath: note.md, content: "The invoice for MV Aurora is due within 30 days.\n"}}
        delay: 1300ms
        usage: {input: 4410, output: 175}
      - {text: "I read it once more.", calls: [{name: read_file, arguments: {filePath: invoice.md}}], delay: 800ms, usage: {input: 4720, output: 41}}
      - {text: "The invoice is in invoice.md: **4,960 euros**, due within 30 days.", delay: 700ms, usage: {input: 4880, output: 37}}
  - match: tide
    turns: [{text: "Berth 5 for MV Kestrel, berth 7 for MV Selkie.", usage: {input: 2950, output: 64}}]
  - match: MV Borealis
    turns: [{text: "I write the invoice.", calls: [{name: write_file, arguments: {filePath: invoice.md, content: "# Invoice 2209\n\nMV Borealis\n"}}], usage: {input: 3300, output: 96}}]
`

const quayPrices = `
version: 1
currency: USD
date: 2026-01-02
source: invented
prices: [{provider: scripted, models: [large-2], input: 12, output: 48}]
`

// TestPictures makes the pictures of the README, of a fleet with invented runs.
func TestPictures(t *testing.T) {
	folder := os.Getenv(picturesVariable)
	if folder == "" {
		folder = t.TempDir()
	}
	prices := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(prices, []byte(quayPrices), 0o600); err != nil {
		t.Fatal(err)
	}
	h := openWith(t, settings.Dev{Models: settings.Models{Prices: prices}, Serving: settings.Serving{Access: settings.Access{Auth: settings.AuthOff}}}, quay(t))
	h.must(http.StatusOK, "PUT", "/v1/agents/invoicing", `{"name":"invoicing","description":"Writes invoices for stays at the quay",`+
		`"tools":["list_files","read_file","search_files","scratchpad_append","write_file"],"approve":{"always":["write_file"]}}`)
	h.must(http.StatusOK, "PUT", "/v1/agents/berth-planner", `{"name":"berth-planner","description":"Plans berths by tide","models":["backup","main"]}`)
	h.remember()
	h.submit(`{"id":"berths-evening-tide","agent":"berth-planner","input":"Plan the berths for the evening tide."}`, true)

	h.submit(`{"id":"invoice-mv-aurora","agent":"invoicing","input":"Write the invoice for the stay of MV Aurora, and a note for its agent.","labels":{"team":"billing"},"files":[`+
		`{"path":"stay.md","text":"MV Aurora lay at berth 7 for 4 nights."},{"path":"tariff.md","text":"Berths 5 to 9: 1,240 euros a night."}]}`, false)
	h.look("light", pictureWidth, 1)
	h.do(chromedp.Navigate(h.url + "/runs/invoice-mv-aurora"))
	for _, file := range []string{"invoice.md", "note.md"} { // each waits for an approval
		h.do(
			until(`(document.querySelector(".waits pre")?.innerText ?? "").includes("`+file+`")`),
			chromedp.SendKeys("input[name=reason]", "Checked against the tariff."),
			chromedp.Click(button("Approve")),
		)
	}
	h.shows("It is the text of step 5.")
	h.do(chromedp.Click(`//div[@class="sayings"]//button`), chromedp.Click(link("Timeline")))
	h.shows("in models")
	h.do(chromedp.Click(`(//button[contains(@class,"model")])[3]`), chromedp.WaitVisible(`//a[normalize-space()="step-3"]`))
	h.shows("waits: approval")
	h.frame(filepath.Join(folder, "console-run.png"), 800)

	h.submit(`{"id":"invoice-mv-borealis","agent":"invoicing","input":"Write the invoice for the stay of MV Borealis."}`, false)
	h.look("dark", pictureWidth, 1)
	h.do(chromedp.Navigate(h.url + "/"))
	h.shows("circuit open")
	h.shows("Newest runs")
	waiting := `[...document.querySelectorAll(".card")].find((c) => c.innerText.startsWith("Waiting for approval"))?.innerText ?? ""`
	h.do(until(`(` + waiting + `).includes("1")`))
	h.frame(filepath.Join(folder, "console-overview.png"), pictureHeight)
}

// quay is two models, of which one is overloaded.
func quay(t *testing.T) model.Provider {
	t.Helper()
	endpoint := func(name, play string) model.Endpoint {
		scenes, err := scripted.Parse([]byte(play))
		if err != nil {
			t.Fatal(err)
		}
		return model.Endpoint{Name: name, Provider: scripted.New(scenes)}
	}
	r, err := model.NewRouter(model.RouterConfig{
		Endpoints: []model.Endpoint{endpoint("main", quayScript), endpoint("backup", `scenes: [{match: "", turns: [{error: {class: overloaded, message: full}}]}]`)},
		Default:   "main", Retry: model.RetryConfig{Retries: -1}, Breaker: model.BreakerConfig{Failures: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// remember gives the run index the runs of a day, the newest last, by the events that they would have left.
func (h *hall) remember() {
	h.Helper()
	tasks := []struct{ agent, id, input string }{
		{"mail-triage", "mail", "Sort the mail of this morning, and answer what is urgent."},
		{"berth-planner", "berths", "Plan the berths for the next tide."},
		{"customs", "customs", "Check the customs papers of MV Kestrel."},
		{"invoicing", "invoice", "Write the invoice for the stay of MV Selkie."},
	}
	dice := rand.New(rand.NewPCG(7, 8)) // the same pictures each time
	nc, err := nats.Connect(h.dev.NATS)
	if err != nil {
		h.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		h.Fatal(err)
	}
	var last string
	now := time.Now()
	for hour := 23; hour >= 0; hour-- {
		runs := 14 + int(9*math.Sin(float64(hour)/3.5)) + dice.IntN(4)
		begins := make([]time.Time, runs)
		for i := range begins {
			begins[i] = now.Add(-time.Duration(hour)*time.Hour - time.Duration(5+dice.IntN(50))*time.Minute - time.Duration(dice.IntN(60))*time.Second)
		}
		slices.SortFunc(begins, time.Time.Compare)
		for i, at := range begins {
			task := tasks[dice.IntN(len(tasks))]
			ref := messages.Ref{Tenant: "default", Run: fmt.Sprintf("%s-%d", task.id, 4000-hour*20+i)}
			took := time.Duration(3000+dice.IntN(9000)) * time.Millisecond
			usage := messages.Usage{Input: 2000 + dice.Int64N(6000), Output: 100 + dice.Int64N(400)}
			usage.Total = usage.Input + usage.Output
			cost := float64(usage.Input)*12e-6 + float64(usage.Output)*48e-6
			result := messages.AgentResult{
				ID: ref.Run, Success: true, Status: messages.StatusCompleted, Steps: 2 + dice.IntN(5), TokenUsage: usage, CostEstimate: &cost, Result: "Done.", StartedAt: at, FinishedAt: at.Add(took),
			}
			if dice.IntN(25) == 0 {
				result.Success, result.Status, result.Error = false, messages.StatusFailed, &messages.RunError{Code: messages.CodeMaxSteps, Message: "no final answer"}
			}
			for n, e := range []struct {
				name string
				at   time.Time
				data any
			}{
				{messages.EventRunQueued, at, messages.RunQueued{Agent: task.agent, Priority: messages.PriorityNormal, Input: task.input, QueuedAt: at}},
				{messages.EventRunStarted, at, messages.RunStarted{Agent: task.agent, Model: "large-2"}},
				{messages.EventRunFinished, at.Add(took), messages.RunFinished{Result: result}},
			} {
				last = ref.Run
				h.tell(js, ref, n+1, e.at, e.name, e.data)
			}
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(patience):
		h.Fatal("the events are not stored")
	}
	h.do(chromedp.Navigate(h.url + "/runs"))
	h.shows(last)
}

// tell stores an event as a worker would.
func (h *hall) tell(js jetstream.JetStream, ref messages.Ref, n int, at time.Time, name string, data any) {
	h.Helper()
	body, err := json.Marshal(messages.Event{
		SpecVersion: "1.0", ID: fmt.Sprintf("%s.%d", ref.Run, n), Source: "/tenants/" + ref.Tenant, Type: "longshore." + name + ".v1", Subject: ref.Run,
		Time: at, DataContentType: "application/json", Sequence: strconv.Itoa(n), Data: json.RawMessage(quote(h.T, data)),
	})
	if err != nil {
		h.Fatal(err)
	}
	if _, err := js.PublishAsync(ref.EventSubject(name), body, jetstream.WithStallWait(patience)); err != nil {
		h.Fatal(err)
	}
}

// frame keeps what a window of a height shows.
func (h *hall) frame(file string, height int64) {
	h.Helper()
	h.do(chromedp.EmulateViewport(pictureWidth, height))
	h.settled()
	eval[bool](h, twoFrames)
	image, err := chromedp.Run(h.tab(), chromedp.CaptureScreenshot())
	if err != nil {
		h.Fatal(err)
	}
	if len(image) > mostPicture {
		h.Errorf("%s has %d bytes, more than %d", filepath.Base(file), len(image), mostPicture)
	}
	if err := os.WriteFile(file, image, 0o600); err != nil {
		h.Error(err)
	}
}
