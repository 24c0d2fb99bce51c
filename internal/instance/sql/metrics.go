package sql

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// statementTime bounds each statement for monitoring; the server itself ends it,
	// whether or not anybody still waits for the answer.
	statementTime = 2 * time.Second
	// sizesEvery is how often sizes are asked for: PostgreSQL looks at every file for
	// them.
	sizesEvery = time.Minute
	// freshFor is how long an answer is given again: whoever asks more often costs
	// the server nothing.
	freshFor = time.Second
)

// Family is one metric that PostgreSQL is asked for.
type Family struct {
	// Name without the prefix, and what it means.
	Name, Help string
	// Labels of its samples.
	Labels []string
	// Counter: it only grows, until the statistics are reset.
	Counter bool
}

// Sample is one value of a family. Values are those of its labels, in their order.
type Sample struct {
	Family Family
	Values []string
	Value  float64
}

// Statistics asks the server on a socket for what monitoring wants to know, on a
// connection of its own that lives as long as the question. What is asked about
// every few seconds for the operator is not asked for here.
type Statistics struct {
	Socket string

	mutex   sync.Mutex
	taken   time.Time
	samples []Sample
	err     error
	sized   time.Time
	sizes   []Sample
}

// Families are all metrics that Collect can give.
func Families() []Family {
	var all []Family
	for _, group := range slices.Concat(groups, sizeGroups) {
		for i := range group.columns {
			family := group.family(i)
			// Some are asked for in another way by another major.
			if !slices.ContainsFunc(all, func(f Family) bool { return f.Name == family.Name }) {
				all = append(all, family)
			}
		}
	}
	return all
}

// Collect returns the values of the moment.
func (s *Statistics) Collect(ctx context.Context) ([]Sample, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if time.Since(s.taken) < freshFor {
		return s.samples, s.err
	}
	s.samples, s.err = s.collect(ctx)
	s.taken = time.Now()
	return s.samples, s.err
}

func (s *Statistics) collect(ctx context.Context) ([]Sample, error) {
	connection, err := Connect(ctx, s.Socket, "postgres")
	if err != nil {
		return nil, err
	}
	defer connection.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is lost with it
	limit := strconv.FormatInt(statementTime.Milliseconds(), 10)
	if _, err := connection.Exec(ctx, "select set_config('statement_timeout', $1, false)", limit); err != nil {
		return nil, fmt.Errorf("bound the statistics: %w", err)
	}
	samples, err := ask(ctx, connection, groups)
	if err != nil {
		return nil, err
	}
	if time.Since(s.sized) > sizesEvery {
		s.sized = time.Now() // even if it fails: what takes too long is not tried at each scrape
		if sizes, err := ask(ctx, connection, sizeGroups); err == nil {
			s.sizes = sizes
		}
	}
	return append(samples, s.sizes...), nil
}

// ask asks all questions that the server's major knows in one round trip.
func ask(ctx context.Context, connection *pgx.Conn, questions []group) ([]Sample, error) {
	major := serverMajor(connection)
	batch := &pgx.Batch{}
	var samples []Sample
	for _, group := range questions {
		if major < group.from || (group.before > 0 && major >= group.before) {
			continue
		}
		batch.Queue(group.query).Query(func(rows pgx.Rows) error {
			found, err := group.read(rows)
			samples = append(samples, found...)
			return err
		})
	}
	if err := connection.SendBatch(ctx, batch).Close(); err != nil {
		return nil, fmt.Errorf("read the statistics: %w", err)
	}
	return samples, nil
}

// read turns rows into samples: first the labels, then a number for each column.
// One that is null is not known, and has no sample.
func (g group) read(rows pgx.Rows) ([]Sample, error) {
	var samples []Sample
	for rows.Next() {
		labels := make([]string, len(g.labels))
		numbers := make([]*float64, len(g.columns))
		var targets []any
		for i := range labels {
			targets = append(targets, &labels[i])
		}
		for i := range numbers {
			targets = append(targets, &numbers[i])
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, fmt.Errorf("read %s: %w", g.columns[0].name, err)
		}
		for i := range labels {
			// In a database of encoding SQL_ASCII, names are any bytes.
			labels[i] = strings.ToValidUTF8(labels[i], "?")
		}
		for i, number := range numbers {
			if number != nil {
				samples = append(samples, Sample{Family: g.family(i), Values: labels, Value: *number})
			}
		}
	}
	return samples, rows.Err()
}

func (g group) family(column int) Family {
	c := g.columns[column]
	return Family{Name: c.name, Help: c.help, Labels: g.labels, Counter: strings.HasSuffix(c.name, "_total")}
}

// serverMajor as the server said when the connection began, such as "17.12 (Debian
// 17.12-1)" or "18beta1".
func serverMajor(connection *pgx.Conn) int {
	major := 0
	for _, c := range connection.PgConn().ParameterStatus("server_version") {
		if c < '0' || c > '9' {
			break
		}
		major = major*10 + int(c-'0')
	}
	return major
}
