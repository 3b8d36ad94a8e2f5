package api_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/dispatcher"
	"github.com/longshore-run/longshore/messages"
	"github.com/longshore-run/longshore/messages/control"
)

// report posts a batch and reads the answer.
func (h *hall) report(path, body string) (all []dispatcher.BatchReport) {
	h.t.Helper()
	resp := h.send("POST", path, body, "Content-Type", "application/x-ndjson")
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "application/x-ndjson" {
		h.t.Fatalf("%s: %d %s", path, resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var r dispatcher.BatchReport
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			h.t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func (h *hall) ended(id string) (b messages.Batch) {
	h.t.Helper()
	for end := time.Now().Add(patience); ; {
		h.do("GET", "/v1/batches/"+id, "", http.StatusOK, &b)
		if b.Status.Ended() {
			return b
		}
		if time.Now().After(end) {
			h.t.Fatalf("%+v", b)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestBatch(t *testing.T) {
	h := open(t)
	text := `{"custom_id":"a","input":"x"}` + "\n" + `{"custom_id":"a","input":"y"}` + "\n" + `{"custom_id":"b","input":"z"}`
	dry := h.report("/v1/batches?id=b1&dryRun=true", text)
	if len(dry) != 2 || dry[0].Error == nil || dry[0].Error.Line != 2 || dry[1].Check == nil || dry[1].Check.Lines != 2 {
		t.Errorf("%+v", dry)
	}
	h.do("GET", "/v1/batches/b1", "", http.StatusNotFound, nil)
	bad := h.report("/v1/batches?id=b1", text)
	if len(bad) != 2 || bad[1].Batch == nil || bad[1].Batch.Status != messages.BatchFailed {
		t.Errorf("%+v", bad)
	}
	good := h.report("/v1/batches?id=b1&skipInvalid=true&expires=1h&maxCost=3&concurrency=1", text)
	if len(good) != 2 || good[1].Batch == nil || good[1].Batch.Counts.Total != 2 || *good[1].Batch.MaxCost != 3 || good[1].Batch.Concurrency != 1 {
		t.Fatalf("%+v", good)
	}
	if b := h.ended("b1"); b.Status != messages.BatchCompleted || b.Counts.Completed != 2 {
		t.Errorf("%+v", b)
	}
	resp := h.send("GET", "/v1/batches/b1/results?status=completed", "")
	defer func() { _ = resp.Body.Close() }()
	var ids []string
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var o messages.BatchOutcome
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, fmt.Sprint(o.CustomID, o.Result.Text))
	}
	if got := strings.Join(ids, " "); got != "ahello bhello" {
		t.Error(got)
	}
	var list control.BatchList
	h.do("GET", "/v1/batches", "", http.StatusOK, &list)
	if len(list.Batches) != 1 {
		t.Errorf("%+v", list)
	}
	h.do("POST", "/v1/batches/b1/cancel", "", http.StatusConflict, nil)
	h.do("POST", "/v1/batches/b1/retry", `{"failed":true}`, http.StatusBadRequest, nil) // nothing failed
	h.do("GET", "/v1/batches/b1/results?order=up", "", http.StatusBadRequest, nil)
	h.do("POST", "/v1/batches?maxCost=x", text, http.StatusBadRequest, nil)
	for _, n := range []string{"0", "-1", "x", "10001"} {
		h.do("POST", "/v1/batches?concurrency="+n, text, http.StatusBadRequest, nil)
	}
	h.do("POST", "/v1/batches?id=a.b", text, http.StatusBadRequest, nil)
	h.do("POST", "/v1/batches?id=empty", "", http.StatusBadRequest, nil)
}

// A body that ends before it should is no batch.
func TestBatchWhoseBodyIsCut(t *testing.T) {
	h := open(t)
	conn, err := net.Dial("tcp", h.dev.API)
	if err != nil {
		t.Fatal(err)
	}
	line := `{"custom_id":"a","input":"x"}` + "\n"
	_, err = fmt.Fprintf(conn, "POST /v1/batches?id=cut HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", 2*len(line), line)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; { // its first line is read
		resp := h.send("GET", "/v1/batches/cut", "")
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the batch is not there")
		}
		time.Sleep(10 * time.Millisecond)
	}
	_ = conn.Close()
	var b messages.Batch
	h.do("GET", "/v1/batches/cut", "", http.StatusOK, &b)
	if b.Status != messages.BatchValidating {
		t.Errorf("%+v", b)
	}
	if again := h.report("/v1/batches?id=cut", line+strings.ReplaceAll(line, `"a"`, `"b"`)); again[0].Batch == nil || again[0].Batch.Counts.Total != 2 {
		t.Errorf("%+v", again)
	}
}
