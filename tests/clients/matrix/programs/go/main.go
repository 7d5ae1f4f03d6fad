// The cases through databricks-sql-go: reads the order from standard input, writes the lines of say.py.
package main

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	_ "github.com/databricks/databricks-sql-go"
)

type object = map[string]any

var db *sql.DB

func text(value any, kind string) string {
	switch v := value.(type) {
	case nil:
		return "NULL"
	case []byte:
		if kind == "BINARY" {
			return hex.EncodeToString(v)
		}
		return string(v)
	case sql.RawBytes:
		return string(v)
	case time.Time:
		if kind == "DATE" {
			return v.UTC().Format("2006-01-02")
		}
		return v.UTC().Format("2006-01-02 15:04:05.999999")
	}
	return fmt.Sprint(value)
}

func rows(statement string, values ...any) ([][]string, error) {
	found, err := db.Query(statement, values...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	kinds, err := found.ColumnTypes()
	if err != nil {
		return nil, err
	}
	all := [][]string{}
	for found.Next() {
		row, places := make([]any, len(kinds)), make([]any, len(kinds))
		for i := range row {
			places[i] = &row[i]
		}
		if err := found.Scan(places...); err != nil {
			return nil, err
		}
		texts := []string{}
		for i, value := range row {
			texts = append(texts, text(value, kinds[i].DatabaseTypeName()))
		}
		all = append(all, texts)
	}
	return all, found.Err()
}

func sum(statement string) (any, error) {
	found, err := db.Query(statement)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	names, err := found.Columns()
	if err != nil {
		return nil, err
	}
	count, total, id, rest := 0, int64(0), int64(0), ""
	places := []any{&id, &rest}[:len(names)]
	for found.Next() {
		if err := found.Scan(places...); err != nil {
			return nil, err
		}
		count++
		total += id
	}
	return object{"rows": count, "sum": total}, found.Err()
}

func cancelled(statement string) (any, error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan string, 1)
	go func() {
		how := "error"
		if found, err := db.QueryContext(ctx, statement); err == nil {
			found.Close()
			how = "rows"
		}
		ended <- how
	}()
	time.Sleep(time.Second)
	start := time.Now()
	cancel()
	how := <-ended
	after, err := rows("SELECT 1")
	if err != nil {
		return nil, err
	}
	return object{"ended": how, "seconds": time.Since(start).Seconds(), "after": after[0][0]}, nil
}

func failing(statement string) (any, error) {
	_, err := rows(statement)
	if err == nil {
		return object{"text": "none"}, nil
	}
	seen := object{"text": err.Error()}
	if told, ok := err.(interface{ SqlState() string }); ok {
		seen["state"] = told.SqlState()
	}
	return seen, nil
}

func written(statements []string) (any, error) {
	var seen any
	for _, statement := range statements {
		if strings.HasPrefix(statement, "SELECT") {
			found, err := rows(statement)
			if err != nil {
				return nil, err
			}
			seen = found
		} else if _, err := db.Exec(statement); err != nil {
			return nil, err
		}
	}
	return seen, nil
}

func seen(name string, statements []string) (any, error) {
	switch name {
	case "connect":
		return rows(statements[0])
	case "types", "nulls":
		found, err := rows(statements[0])
		if err != nil {
			return nil, err
		}
		return found[0], nil
	case "page", "large":
		return sum(statements[0])
	case "cancel":
		return cancelled(statements[0])
	case "error":
		return failing(statements[0])
	case "parameters":
		return rows(strings.ReplaceAll(statements[0], "{}", "?"), 41, "o'b")
	case "write":
		return written(statements)
	}
	return nil, fmt.Errorf("no case %s", name)
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if strings.HasSuffix(module.Path, "databricks-sql-go") {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return ""
}

func main() {
	var order struct {
		Http, Https, Path, Ca string
		Cases                 map[string][]string
	}
	if err := json.NewDecoder(os.Stdin).Decode(&order); err != nil {
		panic(err)
	}
	var err error
	place := order.Http
	if len(os.Args) > 1 && os.Args[1] == "https" {
		os.Setenv("SSL_CERT_FILE", order.Ca)
		place = order.Https
	}
	target := strings.Replace(place, "://", "://token:none-needed@", 1) + order.Path + "?maxRows=1000"
	if db, err = sql.Open("databricks", target); err != nil {
		panic(err)
	}
	say := json.NewEncoder(os.Stdout)
	say.Encode(object{"version": version()})
	for name, statements := range order.Cases {
		what, err := seen(name, statements)
		line := object{"case": name, "seen": what}
		if err != nil {
			line = object{"case": name, "failed": err.Error()}
		}
		say.Encode(line)
	}
}
