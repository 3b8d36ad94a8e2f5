package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Limits of a PDF file.
const (
	pdfTime    = time.Minute
	pdfMemory  = 512 << 20 // bytes of its sandbox
	wasmPage   = 64 << 10
	maxPages   = 5000
	pdfStarted = 30 * time.Second // a sandbox begins within milliseconds
)

// pdfReader reads PDF files one at a time, each in a sandbox of its own. The zero value is ready.
type pdfReader struct {
	mu   sync.Mutex
	pool pdfium.Pool // from the first file on
}

// started is the pool of sandboxes. To compile the program takes seconds, once.
func (r *pdfReader) started(ctx context.Context) (pdfium.Pool, error) {
	if r.pool != nil {
		return r.pool, nil
	}
	features := api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling
	pool, err := webassembly.Init(webassembly.Config{
		Context: context.WithoutCancel(ctx), MaxIdle: 1, MaxTotal: 1, Stdout: io.Discard, Stderr: io.Discard,
		FSConfig:      wazero.NewFSConfig(), // no files
		RuntimeConfig: wazero.NewRuntimeConfig().WithCoreFeatures(features).WithMemoryLimitPages(pdfMemory / wasmPage).WithCloseOnContextDone(true),
	})
	if err != nil {
		return nil, fmt.Errorf("start what reads PDF files: %w", err)
	}
	r.pool = pool
	return pool, nil
}

func (r *pdfReader) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pool == nil {
		return nil
	}
	err := r.pool.Close()
	r.pool = nil
	return err
}

var errPDFTime = fmt.Errorf("its text was not read within %v: it may be made to take long", pdfTime)

// read returns a section for each page.
func (r *pdfReader) read(ctx context.Context, data []byte) (title string, pages []section, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pool, err := r.started(ctx)
	if err != nil {
		return "", nil, err
	}
	limited, stop := context.WithTimeoutCause(ctx, pdfTime, errPDFTime)
	defer stop()
	box, err := pool.GetInstance(pdfStarted)
	if err != nil {
		return "", nil, fmt.Errorf("start what reads PDF files: %w", err)
	}
	killed := make(chan struct{})
	alive := context.AfterFunc(limited, func() {
		defer close(killed)
		_ = box.Kill() // the call that it ends says so
	})
	title, pages, err = readPages(limited, box, data)
	if alive() {
		_ = box.Close() // nothing is left to lose
	} else {
		<-killed
	}
	if limited.Err() != nil {
		return "", nil, context.Cause(limited)
	}
	return title, pages, err
}

// told is an error of the sandbox on one line.
func told(err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	if strings.HasPrefix(text, "wasm error") || strings.HasPrefix(text, "panic") {
		return fmt.Errorf("it is damaged, or needs more than %d MiB of memory", pdfMemory>>20)
	}
	return errors.New(headline(text))
}

// readPages reads a file in its sandbox.
func readPages(ctx context.Context, box pdfium.Pdfium, data []byte) (title string, pages []section, err error) {
	opened, err := box.OpenDocument(&requests.OpenDocument{File: &data})
	if err != nil {
		return "", nil, fmt.Errorf("it cannot be read as PDF: %w", told(err))
	}
	doc := opened.Document
	count, err := box.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc})
	switch {
	case err != nil:
		return "", nil, fmt.Errorf("its pages cannot be counted: %w", told(err))
	case count.PageCount > maxPages:
		return "", nil, fmt.Errorf("it has %d pages, and may have %d: split it", count.PageCount, maxPages)
	}
	if meta, err := box.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: doc, Tag: "Title"}); err == nil {
		title = headline(plain(meta.Value))
	}
	size := 0
	for i := range count.PageCount {
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		text, err := pageText(box, doc, i)
		if err != nil {
			return "", nil, fmt.Errorf("page %d cannot be read: %w", i+1, err)
		}
		if size += len(text); size > maxText {
			return "", nil, fmt.Errorf("it has more than %d bytes of text: split it", maxText)
		}
		pages = append(pages, section{page: i + 1, text: text})
	}
	return title, pages, nil
}

func pageText(box pdfium.Pdfium, doc references.FPDF_DOCUMENT, i int) (string, error) {
	text, err := box.GetPageText(&requests.GetPageText{Page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc, Index: i}}})
	switch {
	case err != nil:
		return "", told(err)
	case len(text.Text) > maxText:
		return "", errors.New("it has too much text")
	default:
		return plain(text.Text), nil
	}
}
