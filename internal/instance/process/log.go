package process

import (
	"bufio"
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// maxEntry bounds an entry of the log that is kept together.
const maxEntry = 64 << 10

// entryPause is how long a last line may wait for lines that belong to it.
const entryPause = 50 * time.Millisecond

// Logger turns the output of PostgreSQL's programs into entries of a log in JSON
// and keeps the last fatal words.
type Logger struct {
	log *slog.Logger

	mutex sync.Mutex
	fatal string
}

// NewLogger logs to the given logger.
func NewLogger(log *slog.Logger) *Logger { return &Logger{log: log} }

// LastFatal is the last entry of level FATAL or PANIC, empty if there was none.
func (l *Logger) LastFatal() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.fatal
}

// Server returns a writer for the output of a server that is about to start. The
// lines of one entry, which begins with the prefix of package config, are kept
// together. When Close returns, everything is in the log.
func (l *Logger) Server() io.WriteCloser {
	l.mutex.Lock()
	l.fatal = ""
	l.mutex.Unlock()
	reader, writer := io.Pipe()
	output := &serverOutput{PipeWriter: writer, read: make(chan struct{})}
	go func() {
		defer close(output.read)
		l.readServer(reader)
	}()
	return output
}

type serverOutput struct {
	*io.PipeWriter
	read chan struct{}
}

// Close implements io.Closer.
func (o *serverOutput) Close() error {
	err := o.PipeWriter.Close()
	<-o.read
	return err
}

// Program returns a writer for the output of another program, and a function
// that returns its last lines.
func (l *Logger) Program(name string) (io.Writer, func() string) {
	tail := &tail{log: l.log.With("program", name)}
	return tail, tail.text
}

func (l *Logger) readServer(reader io.Reader) {
	lines := make(chan string)
	go func() {
		defer close(lines)
		scanner := bufio.NewScanner(reader)
		scanner.Buffer(make([]byte, 0, 4096), maxEntry)
		for {
			for scanner.Scan() {
				lines <- scanner.Text()
			}
			if scanner.Err() == nil {
				return
			}
			// A line beyond the bound: what is left of it is read as another.
			scanner = bufio.NewScanner(reader)
			scanner.Buffer(make([]byte, 0, 4096), maxEntry)
		}
	}()
	var entry []string
	var size int
	for {
		var pause <-chan time.Time
		if len(entry) > 0 {
			pause = time.After(entryPause)
		}
		select {
		case line, open := <-lines:
			if !open {
				l.write(entry)
				return
			}
			if startsEntry(line) || size > maxEntry {
				l.write(entry)
				entry, size = nil, 0
			}
			entry = append(entry, line)
			size += len(line)
		case <-pause:
			l.write(entry)
			entry, size = nil, 0
		}
	}
}

// startsEntry tells whether a line begins with the prefix "time|pid|user|db|".
func startsEntry(line string) bool {
	fields := strings.SplitN(line, "|", 5)
	return len(fields) == 5 && len(fields[0]) >= len("2006-01-02 15:04:05") && fields[0][4] == '-'
}

func (l *Logger) write(entry []string) {
	if len(entry) == 0 {
		return
	}
	text := strings.Join(entry, "\n")
	fields := strings.SplitN(text, "|", 5)
	if !startsEntry(entry[0]) || len(fields) != 5 {
		l.log.Info(text, "program", "postgres")
		return
	}
	severity, message, found := strings.Cut(fields[4], ":  ")
	if !found {
		severity, message = "LOG", fields[4]
	}
	attributes := []any{"program", "postgres", "severity", severity, "pid", fields[1]}
	if fields[2] != "" {
		attributes = append(attributes, "user", fields[2], "database", fields[3])
	}
	switch severity {
	case "FATAL", "PANIC":
		// What is said to a client is no reason for the server's end.
		if fields[2] == "" {
			l.mutex.Lock()
			l.fatal = message
			l.mutex.Unlock()
		}
		l.log.Error(message, attributes...)
	case "ERROR":
		l.log.Error(message, attributes...)
	case "WARNING":
		l.log.Warn(message, attributes...)
	default:
		l.log.Info(message, attributes...)
	}
}

// tail logs whole lines and keeps the last ones.
type tail struct {
	log   *slog.Logger
	mutex sync.Mutex
	rest  []byte
	lines []string
}

const tailLines = 5

func (t *tail) Write(data []byte) (int, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.rest = append(t.rest, data...)
	for {
		line, rest, found := bytes.Cut(t.rest, []byte("\n"))
		if !found {
			return len(data), nil
		}
		t.rest = rest
		if text := strings.TrimSpace(string(line)); text != "" {
			t.log.Info(text)
			t.lines = append(t.lines, text)
			t.lines = t.lines[max(0, len(t.lines)-tailLines):]
		}
	}
}

func (t *tail) text() string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	return strings.Join(t.lines, "; ")
}
